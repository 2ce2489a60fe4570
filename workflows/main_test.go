package workflows_test

import (
	"context"
	"encoding/json"
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
	"interlock/store/pgtest"
)

// The test binary runs itself again, in one of two roles.
const (
	// passVariable holds a pass, as JSON: the whole suite once more, on the first
	// pass's server.
	passVariable = "WORKFLOWS_TEST_PASS"
	// workerVariable holds a childConfig: a worker that is to be killed.
	workerVariable = "WORKFLOWS_TEST_WORKER"
)

// pass is one run of the whole suite.
type pass struct {
	Address  string // of the server
	Postgres bool   // the store is PostgreSQL, not SQLite
	Uncached bool   // no workflow cache: every task replays its run from the start
}

func (p pass) String() string {
	text := "on SQLite"
	if p.Postgres {
		text = "on PostgreSQL"
	}
	if p.Uncached {
		text += ", without a workflow cache"
	}
	return text
}

// passes follow the first one.
var passes = []pass{{Uncached: true}, {Postgres: true}, {Postgres: true, Uncached: true}}

var (
	temporalClient client.Client
	this           pass
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
	if text := os.Getenv(passVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &this); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return withClient(m.Run)
	}
	server, err := localtemporal.Start(context.Background(), localtemporal.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	this.Address = server.Address()
	code := withClient(m.Run)
	if code != 0 || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	for _, p := range passes {
		p.Address = this.Address
		if p.Postgres && !pgtest.Available() {
			fmt.Printf("not %s: there is no PostgreSQL\n", p)
			continue
		}
		fmt.Printf("again, %s\n", p)
		if err := p.run(); err != nil {
			fmt.Printf("%s: %v\n", p, err)
			return 1
		}
	}
	return 0
}

func (p pass) run() error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	again := exec.Command(os.Args[0], flagsOf(os.Args[1:])...)
	again.Env = append(os.Environ(), passVariable+"="+string(text))
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	return again.Run()
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
	temporalClient, err = client.Dial(client.Options{HostPort: this.Address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
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
