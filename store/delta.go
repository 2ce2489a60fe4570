package store

import "context"

// Delta is a piece of a model's answer while it is being received. It is stored
// nowhere and may be lost; the answer itself is an event of the run.
type Delta struct {
	Tenant     string `json:"tenant"`
	Address    string `json:"address"`
	FirstRunID string `json:"first_run_id"`
	Turn       int    `json:"turn"`
	// Attempt is that of the model call: where it rises, what was handed out of the
	// one before counts for nothing. N counts the pieces of an attempt from 1: a gap
	// tells that some were lost.
	Attempt int    `json:"attempt"`
	N       int    `json:"n"`
	Text    string `json:"text"`
}

// Deltas hands pieces of answers to whoever listens at the moment.
type Deltas interface {
	// Tell hands a piece to who hears, in this process, and where the driver can (over
	// PostgreSQL) in others. It does not wait, and fails silently.
	Tell(d Delta)
	// Hear returns a channel of the pieces of what the scope names, until ctx ends; it
	// is never closed. Who is slow loses pieces, and holds nothing up.
	Hear(ctx context.Context, scope Scope) <-chan Delta
}
