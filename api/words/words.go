// Package words says in plain English what stands in a journal and at a gate: for
// the command line and the pages, so that both call a thing by the same name.
//
// What is written of users, models and tools in these texts is as they wrote it:
// whoever shows it puts it through package visible.
package words
