package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/api"
	"interlock/api/access"
	"interlock/config"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/localtemporal"
	"interlock/starter"
	"interlock/store/sqlite"
	"interlock/tool"
	"interlock/worker"
)

// loadCost is what the HTTP API does under load: streams that follow runs and the
// inbox, reads of the store, and messages and verdicts, all at once. The server, its
// worker and its store are one process; Temporal and whoever asks are others.
type loadCost struct {
	Readers  int       `json:"readers"` // streams
	Runs     int       `json:"runs"`
	Active   int       `json:"active_runs"`
	Seconds  float64   `json:"seconds"`
	Reads    int       `json:"reads"`
	Acts     int       `json:"acts"`     // messages and verdicts
	Failed   int       `json:"failed"`   // of both: any answer but 2xx, 429 too
	Events   int       `json:"events"`   // that all streams received
	Lost     int       `json:"lost"`     // of those that a stream had to receive
	Repeated int       `json:"repeated"` // received twice by a stream
	Read     quantiles `json:"read_ms"`
	Act      quantiles `json:"act_ms"`
	Event    quantiles `json:"event_ms"` // from an event's own time to a reader
	Idle     float64   `json:"idle_mb"`  // of the process's heap and stacks, with no stream open
	Most     float64   `json:"most_mb"`  // the same, at its most under load
	After    float64   `json:"after_mb"` // the same, once all streams are closed
	Why      string    `json:"why,omitempty"`
}

// quantiles are the median and the 99th percentile.
type quantiles struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// loadVariable makes a process the server of the measurement.
const loadVariable = "INTERLOCK_BENCH_LOAD"

// loadJob says how much.
type loadJob struct {
	Readers, Runs, Active int
	Reads, Acts           float64 // a second
	For                   time.Duration
}

// loadServed is what the server says of itself once it listens.
type loadServed struct {
	URL    string   `json:"url"`
	Tokens []string `json:"tokens"`
	Idle   float64  `json:"idle_mb"`
}

// loadEnded is what it says at its end.
type loadEnded struct {
	Most  float64 `json:"most_mb"`
	After float64 `json:"after_mb"`
}

// subjects are as many as there are tokens: a subject may open so many streams only.
const loadSubjects = 20

// measureLoad puts a server under load.
func measureLoad(ctx context.Context, dir string, job loadJob, progress io.Writer) ([]loadCost, error) {
	out := []loadCost{}
	if job.For == 0 {
		return out, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), loadVariable+"="+filepath.Join(dir, "load.db"))
	cmd.Stderr = progress
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := json.NewDecoder(bufio.NewReader(stdout))
	var served loadServed
	if err := lines.Decode(&served); err != nil {
		return nil, errors.Join(fmt.Errorf("the server under load: %w", err), stdin.Close(), cmd.Wait())
	}
	l := newLoad(job, served)
	cost, failed := l.run(ctx)
	var ended loadEnded
	err = errors.Join(failed, stdin.Close(), lines.Decode(&ended), cmd.Wait())
	if err != nil {
		return nil, err
	}
	cost.Idle, cost.Most, cost.After = served.Idle, ended.Most, ended.After
	fmt.Fprintf(progress, "%d streams, %d reads, %d acts in %.0f s: %d failed, %d of %d events lost, %d repeated; read %.1f ms (p99 %.1f), act %.1f (%.1f), event %.1f (%.1f); %.0f MB at most\n",
		cost.Readers, cost.Reads, cost.Acts, cost.Seconds, cost.Failed, cost.Lost, cost.Events, cost.Repeated,
		cost.Read.Median, cost.Read.P99, cost.Act.Median, cost.Act.P99, cost.Event.Median, cost.Event.P99, cost.Most)
	return append(out, cost), nil
}

// serveLoad is the process of the server: it says where it listens, serves until its
// input ends, and says what it held.
func serveLoad(ctx context.Context, database string, stdin io.Reader, stdout io.Writer) error {
	server, err := localtemporal.Start(ctx, localtemporal.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := sqlite.Open(ctx, database, nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	settings := config.Default()
	settings.TaskQueue = queue
	work, err := worker.New(worker.Config{Settings: settings, Client: c, Store: s, Model: paysAgain(), Log: quiet}, loadAgent())
	if err != nil {
		return err
	}
	if err := work.Start(ctx); err != nil {
		return err
	}
	defer work.Stop()
	tokens, auth, err := loadAccess(filepath.Join(filepath.Dir(database), "access.yaml"), quiet)
	if err != nil {
		return err
	}
	runs := starter.New(c, starter.WithReader(s), starter.WithTaskQueue(queue))
	door, err := api.New(api.Config{Runs: runs, Reads: s, Auth: auth, Log: quiet, Limits: api.Limits{Rate: 1000}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, listener, door.Handler(), time.Minute, 10*time.Second, quiet, door.EndStreams)
	}()
	if err := json.NewEncoder(stdout).Encode(loadServed{URL: "http://" + listener.Addr().String(), Tokens: tokens, Idle: mb(memory())}); err != nil {
		return err
	}
	most := watchMemory(stdin)
	after := mb(memory())
	stop()
	return errors.Join(<-ended, json.NewEncoder(stdout).Encode(loadEnded{Most: most, After: after}))
}

// watchMemory is the most that the process holds until its input ends.
func watchMemory(stdin io.Reader) float64 {
	gone := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, stdin); close(gone) }()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var most float64
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, mb(int64(m.HeapInuse+m.StackInuse)))
		select {
		case <-gone:
			return most
		case <-tick.C:
		}
	}
}

func mb(bytes int64) float64 { return round(float64(bytes) / (1 << 20)) }

// loadAccess makes the access tokens of all who ask.
func loadAccess(file string, log *slog.Logger) (tokens []string, auth *access.Tokens, err error) {
	for i := range loadSubjects {
		token, entry := access.New(access.Entry{ID: fmt.Sprint("s", i), Tenant: tenant, Subject: fmt.Sprint("s", i),
			May: []access.Role{access.Operator, access.Starter}, Roles: []string{"boss"}})
		if err := access.Add(file, entry); err != nil {
			return nil, nil, err
		}
		tokens = append(tokens, token)
	}
	auth, err = access.OpenTokens(file, log)
	return tokens, auth, err
}

type payment struct {
	Turn int `json:"turn"`
}

// loadAgent pays whenever its user says something, once a person has approved it.
func loadAgent() *agent.Definition {
	pay := tool.Keyed("pay", func(_ context.Context, _ tool.Key, p payment) (payment, error) { return p, nil },
		func(s *waitingState, _, _ payment) error { s.Note = "paid"; return nil }).
		Gate(tool.Gate[waitingState, payment]{Roles: []string{"boss"}, Expires: 24 * time.Hour})
	return agent.Define(agent.Spec[struct{}, waitingState]{Name: "load", Version: 1, Instructions: "Pay.",
		Init:   func(struct{}) (waitingState, error) { return waitingState{}, nil },
		Phases: []agent.Phase[waitingState]{{Name: "work", Tools: []agent.Tool[waitingState]{pay}, Moves: []agent.Move[waitingState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// paysAgain asks for a payment after each message, and then has no more to say.
func paysAgain() llm.Model {
	return scripted.Func("scripted", func(req llm.Request) llm.Response {
		opening := req.View.Turns[len(req.View.Turns)-1].Opening
		if slices.ContainsFunc(opening, func(it agent.Item) bool { return it.Kind == agent.ItemMessage }) {
			return scripted.Call("pay", payment{req.View.Turn})
		}
		return scripted.Say("Done.")
	})
}
