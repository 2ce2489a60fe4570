//go:build !unix

package localtemporal

import (
	"context"

	"go.temporal.io/sdk/testsuite"
)

// launcher runs the CLI as the SDK does: here nothing ends the server when this
// process dies without calling Stop, or when a start fails halfway.
type launcher struct{ path string }

func newLauncher(cli string) (*launcher, error) { return &launcher{path: cli}, nil }

func (*launcher) start(ctx context.Context, o testsuite.DevServerOptions) (*testsuite.DevServer, error) {
	return testsuite.StartDevServer(ctx, o)
}

func (*launcher) kill()        {}
func (*launcher) release()     {}
func (*launcher) removeFiles() {}
