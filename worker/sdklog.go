package worker

import (
	"context"
	"errors"
	"log/slog"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// SDKLog is the logger for the options of a Temporal client whose workers serve runs.
// An activity that was told to stop, and did, is what was asked for: the SDK calls it
// an error, here it is news, at level info.
func SDKLog(log *slog.Logger) sdklog.Logger {
	return sdklog.NewStructuredLogger(slog.New(sdkLog{log.Handler()}))
}

type sdkLog struct{ slog.Handler }

func (h sdkLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level <= slog.LevelInfo || !toldToStop(r) {
		return h.Handler.Handle(ctx, r)
	}
	if !h.Enabled(ctx, slog.LevelInfo) {
		return nil
	}
	r = r.Clone()
	r.Level = slog.LevelInfo
	return h.Handler.Handle(ctx, r)
}

func (h sdkLog) WithAttrs(attrs []slog.Attr) slog.Handler { return sdkLog{h.Handler.WithAttrs(attrs)} }
func (h sdkLog) WithGroup(name string) slog.Handler       { return sdkLog{h.Handler.WithGroup(name)} }

// toldToStop reports that what a record complains of is a cancellation, and no more.
func toldToStop(r slog.Record) (told bool) {
	if r.Message != "Activity error." && r.Message != "RecordActivityHeartbeat with error" {
		return false
	}
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			told = temporal.IsCanceledError(err) || errors.Is(err, context.Canceled)
		}
		return true
	})
	return told
}
