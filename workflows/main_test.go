package workflows_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"interlock/localtemporal"
)

// The test binary runs itself again, in one of two roles.
const (
	// uncachedVariable holds the address of the first run's server: the whole
	// suite once more, with no workflow cache, so that every task replays its
	// run from the start.
	uncachedVariable = "WORKFLOWS_TEST_UNCACHED"
	// workerVariable holds a childConfig: a worker that is to be killed.
	workerVariable = "WORKFLOWS_TEST_WORKER"
)

var (
	temporalClient client.Client
	address        string // of the server
	uncached       bool
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if c := os.Getenv(workerVariable); c != "" {
		return childWorker(c)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("16") // most of these tests wait for a time-out
	}
	if address = os.Getenv(uncachedVariable); address != "" {
		uncached = true
		return withClient(m.Run)
	}
	server, err := localtemporal.Start(context.Background(), localtemporal.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	address = server.Address()
	code := withClient(m.Run)
	if code != 0 || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	fmt.Println("again, without a workflow cache")
	again := exec.Command(os.Args[0], flagsOf(os.Args[1:])...)
	again.Env = append(os.Environ(), uncachedVariable+"="+address)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	if err := again.Run(); err != nil {
		fmt.Println("without a workflow cache:", err)
		return 1
	}
	return 0
}

// flagsOf leaves out what would write the first run's files again.
func flagsOf(args []string) []string {
	var out []string
	for _, a := range args {
		if name, _, ok := cutFlag(a); !ok || !outputs[name] {
			out = append(out, a)
		}
	}
	return out
}

func withClient(f func() int) int {
	var err error
	temporalClient, err = client.Dial(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer temporalClient.Close()
	return f()
}

var outputs = map[string]bool{"test.coverprofile": true, "test.cpuprofile": true, "test.memprofile": true, "test.blockprofile": true,
	"test.mutexprofile": true, "test.trace": true, "test.gocoverdir": true, "test.testlogfile": true}

func cutFlag(arg string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name, value, ok && strings.HasPrefix(arg, "-")
}
