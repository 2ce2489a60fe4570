package activities

import (
	"context"
	"time"

	"interlock/signals"
	"interlock/token"
)

// CheckToken says whom a token speaks of, or why it is not believed. It is a local
// activity: it writes nothing, and asks nobody but the directory that the worker was
// given, if any.
func (a *Activities) CheckToken(ctx context.Context, in signals.Sealed) (signals.Believed, error) {
	who, err := a.Trust.Check(ctx, in.Token, token.Expected{Tenant: in.Tenant, Address: in.Address, FirstRunID: in.FirstRunID,
		Act: in.Act, Body: in.Said, ID: in.ID, At: time.UnixMicro(in.AtMicros).UTC()})
	if err != nil {
		return signals.Believed{Refused: clip(err.Error())}, nil
	}
	return signals.Believed{Principal: who}, nil
}
