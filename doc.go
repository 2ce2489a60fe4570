// Package interlock holds no code: it is the root of the module, where the tests
// of the whole tree live. What Interlock is and where to begin: README.md.
package interlock
