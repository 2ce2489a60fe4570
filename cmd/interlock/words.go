package main

import told "interlock/api/words"

// The words of the command line are those of the pages.
var (
	describe  = told.Event
	question  = told.Question
	value     = told.Value
	with      = told.Call
	empty     = told.Empty
	members   = told.Members
	origin    = told.Origin
	deciders  = told.Deciders
	rules     = told.Rules
	principal = told.Principal
	because   = told.Because
	stamp     = told.Stamp
	approvals = told.Approvals
	askedBy   = told.AskedBy
	asked     = told.Asked
	byWhom    = told.ByWhom
)
