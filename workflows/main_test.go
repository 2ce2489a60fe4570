package workflows_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.temporal.io/sdk/client"

	"interlock/localtemporal"
)

var server *localtemporal.Server

func temporalClient() client.Client { return server.Client() }

func TestMain(m *testing.M) {
	var err error
	if server, err = localtemporal.Start(context.Background(), localtemporal.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
