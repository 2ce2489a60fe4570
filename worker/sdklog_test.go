package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// A tool that was told to stop and did is no error in anybody's log; all else that
// the SDK complains of stays what it is.
func TestSDKLog(t *testing.T) {
	const ended, beat = "Activity error.", "RecordActivityHeartbeat with error"
	for _, tc := range []struct {
		message string
		err     error
		level   string
	}{
		{ended, fmt.Errorf("hotels: %w", context.Canceled), "INFO"},
		{ended, temporal.NewCanceledError(), "INFO"},
		{beat, temporal.NewCanceledError(), "INFO"},
		{ended, context.DeadlineExceeded, "ERROR"},
		{ended, errors.New("context canceled"), "ERROR"},
		{"Workflow panic", context.Canceled, "ERROR"},
	} {
		for _, least := range []slog.Level{slog.LevelInfo, slog.LevelWarn} {
			var out bytes.Buffer
			log := SDKLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: least})))
			sdklog.With(log, "TaskQueue", "q").Error(tc.message, "Attempt", 1, "Error", tc.err)
			if tc.level == "INFO" && least > slog.LevelInfo {
				require.Empty(t, out.String(), tc)
				continue
			}
			require.Contains(t, out.String(), "level="+tc.level, tc)
			require.Contains(t, out.String(), "TaskQueue=q Attempt=1 Error=", tc)
		}
	}
}
