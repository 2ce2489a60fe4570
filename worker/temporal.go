package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/config"
)

// dialTimeout is how long a server may take to answer at all.
const dialTimeout = 10 * time.Second

// Dial connects to Temporal, as [config.TemporalOptions] says. A server that
// does not answer is CodeUnavailable. A nil log is [slog.Default].
func Dial(ctx context.Context, c config.Config, log *slog.Logger) (client.Client, error) {
	options, err := config.TemporalOptions(c)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.Default()
	}
	options.Logger = SDKLog(log)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	t, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, &agent.Error{Code: agent.CodeUnavailable, Err: err, Message: fmt.Sprintf(
			"Temporal at %s cannot be reached (%v): start it, or set TEMPORAL_ADDRESS, or name a profile by temporal.profile", options.HostPort, err)}
	}
	return t, nil
}
