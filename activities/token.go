package activities

import (
	"context"
	"time"

	"interlock/signals"
	"interlock/token"
)

// CheckToken says whom a token speaks of, or why it is not believed. It is a local
// activity: it reads no network and writes nothing.
func (a *Activities) CheckToken(_ context.Context, in signals.Sealed) (signals.Believed, error) {
	want := token.Expected{Tenant: in.Tenant, Address: in.Address, FirstRunID: in.FirstRunID,
		Act: in.Act, Body: in.Said, ID: in.ID, At: time.UnixMicro(in.AtMicros).UTC()}
	who, err := a.Trust.Check(in.Token, want)
	if err != nil && in.Began != "" { // a message that came with the start, before the run had an id
		want.FirstRunID = in.Began
		if early, other := a.Trust.Check(in.Token, want); other == nil {
			who, err = early, nil
		}
	}
	if err != nil {
		return signals.Believed{Refused: clip(err.Error())}, nil
	}
	return signals.Believed{Principal: who}, nil
}
