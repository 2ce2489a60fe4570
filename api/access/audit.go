package access

import (
	"context"
	"log/slog"
)

// Audit writes one line for each act, allowed or refused: who did what to what.
// It holds no body and no secret; a run's journal says what was done.
type Audit struct{ log *slog.Logger }

// NewAudit makes an audit of a log; nil is slog's default.
func NewAudit(log *slog.Logger) *Audit {
	if log == nil {
		log = slog.Default()
	}
	return &Audit{log}
}

// Line is one act.
type Line struct {
	Act       Act
	Caller    Caller // the zero one where nobody was recognised
	AsUser    string
	Target    string // a run's address, with a gate or ruling behind #; a ledger key; "" for a list
	RequestID string
	Outcome   string // ok, or the code of the refusal
}

// Write writes the line.
func (a *Audit) Write(ctx context.Context, l Line) {
	attributes := []slog.Attr{slog.String("act", string(l.Act)), slog.String("subject", l.Caller.Subject), slog.String("tenant", l.Caller.Tenant),
		slog.String("auth", l.Caller.Auth), slog.String("target", l.Target), slog.String("request_id", l.RequestID), slog.String("outcome", l.Outcome)}
	if l.AsUser != "" {
		attributes = append(attributes, slog.String("as_user", l.AsUser))
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "audit", attributes...)
}
