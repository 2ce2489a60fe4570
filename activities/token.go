package activities

import (
	"context"
	"time"

	"interlock/agent"
	"interlock/signals"
	"interlock/token"
)

// CheckToken says whom a token speaks of, or why it is not believed. It is a local
// activity: it writes nothing, and asks nobody but the directory that the worker was
// given, if any. An error says that it cannot be found out now.
func (a *Activities) CheckToken(ctx context.Context, in signals.Sealed) (signals.Believed, error) {
	want := token.Expected{Tenant: in.Tenant, Address: in.Address, FirstRunID: in.FirstRunID,
		Act: in.Act, Body: in.Said, ID: in.ID, At: time.UnixMicro(in.AtMicros).UTC()}
	who, err := a.Trust.Check(ctx, in.Token, want)
	if err != nil && in.Began != "" { // a message that came with the start, before the run had an id
		want.FirstRunID = in.Began
		if early, other := a.Trust.Check(ctx, in.Token, want); other == nil {
			who, err = early, nil
		}
	}
	if agent.ErrorCode(err) == agent.CodeUnavailable {
		return signals.Believed{}, failed(signals.ErrUnjudged, err.Error())
	}
	if err != nil {
		return signals.Believed{Refused: clip(err.Error())}, nil
	}
	return signals.Believed{Principal: who}, nil
}
