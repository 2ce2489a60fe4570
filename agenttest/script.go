package agenttest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// update is set by `go test -agenttest.update`. Programs that import this
// package for [Export] have no such flag.
var update *bool

func init() {
	if testing.Testing() {
		update = flag.Bool("agenttest.update", false, "rewrite the expectations of scripts; read the difference before you commit it")
	}
}

// Script plays the scripts of a pattern of files ("testdata/*.txt"), each in a
// subtest: the inputs of a run, and under ---- the events that each must give.
//
//	start {"customer_id":"c-017"}
//	----
//	started agent=refund version=1
//	…
//
//	message "refund 1042, it broke"
//	----
//	message
//	turn_started
//
//	model
//	  set_fields {"fields":{"order_id":"1042"},"quote":"refund 1042"}
//	  find_order {"order_id":"1042"}
//	----
//	…
//
//	done 1.1 {"id":"1042","total":{"currency":"EUR","minor":8990}}
//
// A paragraph is an input: a line, and for model its calls, indented. A text is
// a JSON string. Lines that begin with # are comments. The inputs:
//
//	start {body}                    first; user=, tenant=, key=; of a repair run repair={…}
//	message "text"                  policy=queue|reject|interrupt|rollback
//	model "text"                    and its calls; finish=length
//	model_failed "reason"
//	done STEP result                it happened; stands STEP result: in an earlier branch
//	failed STEP "reason"            it did not happen
//	refused STEP "reason"           it did not happen and never will
//	unknown STEP "reason"           nobody knows
//	stopped STEP                    it was let go
//	verdict GATE approve|reject     reason=, digest=; return, edit with args={…}; of a question
//	                                answer, answer={…}; of a step in doubt happened|did_not_happen,
//	                                result=, again=true
//	lift_ruling RULING              reason=; confirm_ruling of the model's draft
//	amend {fields}                  reason=
//	undo STEP...                    reason=
//	pause, resume                   reason=
//	cancel                          reason=, undo=none|turn|run
//	pass                            time passes: at=
//	hold, snapshot RUN_ID           the run goes on in a new Temporal run
//	state                           no input: expects status, phase and state
//
// Options of all inputs are at= (a time, or how long after the input before:
// at=+24h), and of those that somebody sends id=, by= and roles= (a,b). Time
// stands still without at. Export writes such a file of a run's journal.
//
// `go test -agenttest.update` rewrites what is below the ----.
func Script(t *testing.T, def *agent.Definition, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatalf("agenttest: %v", err)
	}
	if len(files) == 0 {
		t.Fatalf("agenttest: there is no script %s", pattern)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, filepath.Ext(name)), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := Play(t, def, data)
			if update != nil && *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			require.Equal(t, string(data), string(got), "%s; -agenttest.update rewrites it", file)
		})
	}
}

// Play plays a script, whatever it expects, and returns it with what came, and
// the run as it then stands.
func Play(t testing.TB, def *agent.Definition, script []byte) ([]byte, *Run) {
	t.Helper()
	p := &player{run: Options{}.newRun(t, def)}
	var out strings.Builder
	for _, para := range strings.Split(strings.TrimRight(string(script), "\n"), "\n\n") {
		input, _, _ := strings.Cut(para, "\n----")
		input = strings.TrimRight(input, "\n")
		out.WriteString(input + "\n")
		var lines []string
		for _, line := range strings.Split(input, "\n") {
			if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			came, err := p.do(lines)
			if err != nil {
				t.Fatalf("agenttest: %s: %v", cut(lines[0]), err)
			}
			if came != "" {
				out.WriteString("----\n" + came)
			}
		}
		out.WriteString("\n")
	}
	return []byte(strings.TrimRight(out.String(), "\n") + "\n"), p.run
}

// player gives a run the inputs of a script.
type player struct{ run *Run }

func (p *player) do(lines []string) (string, error) {
	p.run.t.Helper()
	w, err := readLine(lines[0])
	if err != nil {
		return "", err
	}
	if err := p.clock(w); err != nil {
		return "", err
	}
	switch w.verb {
	case "state":
		return stateOf(p.run.Run()), nil
	case "hold":
		p.run.machine.Hold()
		for _, twin := range p.run.twins {
			twin.Hold()
		}
		return "", nil
	case "snapshot":
		if err := p.run.restore(); err != nil {
			return "", err
		}
	}
	read, ok := inputs[w.verb]
	if !ok {
		return "", fmt.Errorf("there is no input %q", w.verb)
	}
	if w.verb != "start" && p.run.Run().Seq == 0 {
		return "", errors.New("a script begins with start")
	}
	in, err := read(p, w)
	if err == nil && w.verb == "model" {
		in, err = withCalls(in.(agent.Proposed), lines[1:])
	} else if err == nil && len(lines) > 1 {
		err = fmt.Errorf("%q belongs to no model", cut(lines[1]))
	}
	trace := w.optionOr("trace", "")
	if name := w.unknown(); err == nil && name != "" {
		err = fmt.Errorf("there is no option %s here", name)
	}
	if err != nil {
		return "", err
	}
	return p.give(in, trace), nil
}

// give gives the run an input and says what came of it.
func (p *player) give(in agent.Input, trace string) string {
	p.run.t.Helper()
	p.run.forget(in)
	had := len(p.run.events)
	e := p.run.push(in)
	e.trace = trace
	p.run.drive()
	out := briefs(p.run.events[had:])
	switch {
	case out != "":
		return out
	case e.receipt.Reason != "":
		return fmt.Sprintf("%s: %s\n", e.receipt.Status, e.receipt.Reason)
	case e.receipt.Status != agent.Accepted:
		return string(e.receipt.Status) + "\n"
	}
	return "nothing\n"
}

// clock moves the time to that of a line.
func (p *player) clock(w words) error {
	at, ok := w.option("at")
	if w.verb == "pass" && w.text(0) != "" {
		at, ok = "+"+w.text(0), true
	}
	if !ok {
		return nil
	}
	to, err := time.Parse(time.RFC3339Nano, at)
	if after, relative := strings.CutPrefix(at, "+"); relative {
		var d time.Duration
		d, err = time.ParseDuration(after)
		to = p.run.now.Add(d)
	}
	switch {
	case err != nil:
		return fmt.Errorf("at: %w", err)
	case to.Before(p.run.now) && p.run.Run().Seq > 0:
		return fmt.Errorf("at: %s is before the input that came before", at)
	}
	p.run.now = to
	return nil
}

// forget notes that what an input brings is no longer waited for.
func (r *Run) forget(in agent.Input) {
	step := ""
	switch in := in.(type) {
	case agent.Proposed, agent.ProposalFailed:
		r.open = nil
	case agent.StepFinished:
		step = in.Step
	case agent.StepNotApplied:
		step = in.Step
	case agent.StepUnapproved:
		step = in.Step
	case agent.StepUnknown:
		step = in.Step
	case agent.StepStopped:
		step = in.Step
	}
	for i, s := range r.held {
		if s.task.Step == step {
			r.held = append(r.held[:i:i], r.held[i+1:]...)
			return
		}
	}
}

// restore makes the machines go on from their snapshots, as the next Temporal
// run does.
func (r *Run) restore() error {
	again := func(m *agent.Machine) (*agent.Machine, error) {
		var s agent.Snapshot
		if err := json.Unmarshal([]byte(text(m.Snapshot())), &s); err != nil {
			return nil, err
		}
		return agent.Restore(r.def, s)
	}
	var err error
	if r.machine, err = again(r.machine); err != nil {
		return err
	}
	for i := range r.twins {
		if r.twins[i], err = again(r.twins[i]); err != nil {
			return err
		}
	}
	return nil
}
