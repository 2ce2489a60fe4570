package agent_test

import (
	"encoding/json"
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

var rewrite = flag.Bool("rewrite", false, "rewrite the scripts' expectations; read the difference before you commit it")

// TestScripts runs testdata/*.txt: an input a paragraph, and under ---- the
// events, commands and receipt that it must give.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var out strings.Builder
	var d *driver
	for _, para := range strings.Split(strings.TrimRight(string(data), "\n"), "\n\n") {
		input, _, _ := strings.Cut(para, "\n----")
		var body []string
		for _, line := range strings.Split(input, "\n") {
			if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
				body = append(body, line)
			}
		}
		out.WriteString(strings.TrimRight(input, "\n"))
		if len(body) > 0 {
			if d == nil {
				d = newDriver(t)
			}
			out.WriteString("\n----\n" + d.do(body))
		} else {
			out.WriteString("\n")
		}
		out.WriteString("\n")
	}
	got := strings.TrimRight(out.String(), "\n") + "\n"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	require.Equal(t, string(data), got)
}

// driver runs one machine by text commands.
type driver struct {
	t      *testing.T
	m      *agent.Machine
	now    time.Time
	events []agent.Event
	ids    int
}

func newDriver(t *testing.T) *driver {
	return &driver{t: t, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
}

// words splits a line into words; key=value pairs go to a map, quotes hold spaces.
func words(line string) (list []string, kv map[string]string) {
	kv = map[string]string{}
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var w string
		if i := strings.IndexAny(line, " \""); i >= 0 && line[i] == '"' {
			end := strings.Index(line[i+1:], `"`)
			w, line = line[:i]+line[i+1:i+1+end], line[i+end+2:]
		} else if i >= 0 {
			w, line = line[:i], line[i:]
		} else {
			w, line = line, ""
		}
		if k, v, ok := strings.Cut(w, "="); ok && !strings.Contains(k, " ") {
			kv[k] = v
		} else {
			list = append(list, w)
		}
	}
	return list, kv
}

func (d *driver) do(lines []string) string {
	d.now = d.now.Add(time.Second)
	verb, rest, _ := strings.Cut(lines[0], " ")
	fields := ""
	if verb == "amend" { // JSON without spaces, then the words
		fields, rest, _ = strings.Cut(rest, " ")
	}
	list, kv := words(rest)
	arg := func(i int) string {
		if i < len(list) {
			return list[i]
		}
		return ""
	}
	id := kv["id"]
	if id == "" {
		d.ids++
		id = fmt.Sprintf("i%d", d.ids)
	}
	who := agent.Principal{Subject: kv["by"], Tenant: kv["tenant"]}
	if who.Subject == "" {
		who.Subject = "user"
	}
	if kv["roles"] != "" {
		who.Roles = strings.Split(kv["roles"], ",")
	}
	after := func(n int) string { // the rest of the line after n words
		s := rest
		for range n {
			_, s, _ = strings.Cut(s, " ")
		}
		return s
	}
	switch verb {
	case "start":
		def := agents[arg(0)]()
		require.NoError(d.t, def.Err())
		d.m, d.events = agent.NewMachine(def), nil
		body, err := agent.Canonical([]byte(after(1)))
		require.NoError(d.t, err)
		return d.step(agent.Started{Tenant: "acme", Key: "k1", FirstRunID: "run-1", Version: 1, Rules: agent.Rules, Limits: def.Limits(),
			Fingerprint: "f", Principal: agent.Principal{Subject: "backend"}, User: "user", Body: body})
	case "message":
		return d.step(agent.Message{ID: id, Principal: who, Text: strings.ReplaceAll(arg(0), `\0`, "\x00"), Policy: agent.MessagePolicy(kv["policy"]), First: kv["first"] == "true"})
	case "model":
		in := agent.Proposed{Turn: d.m.Run().Turn, Text: kv["text"], Finish: agent.FinishReason(kv["finish"]), Model: "scripted",
			Usage: agent.Usage{Input: 100, Output: 10}}
		for _, l := range lines[1:] {
			name, args, _ := strings.Cut(strings.TrimSpace(l), " ")
			in.Calls = append(in.Calls, agent.RawCall{Tool: name, Args: args, ProviderID: "call_1"})
		}
		if in.Finish == "" {
			in.Finish = agent.FinishStop
		}
		return d.step(in)
	case "model-failed":
		return d.step(agent.ProposalFailed{Turn: d.m.Run().Turn, Reason: arg(0)})
	case "done":
		return d.step(agent.StepFinished{Step: arg(0), Result: agent.JSON(after(1))})
	case "large":
		return d.step(agent.StepFinished{Step: arg(0), Unkept: "result_too_large: 3145728 bytes"})
	case "failed":
		return d.step(agent.StepNotApplied{Step: arg(0), Reason: arg(1)})
	case "refused":
		return d.step(agent.StepNotApplied{Step: arg(0), Reason: arg(1), ForGood: true})
	case "unapproved":
		return d.step(agent.StepUnapproved{Step: arg(0), Reason: arg(1)})
	case "unknown":
		return d.step(agent.StepUnknown{Step: arg(0), Reason: arg(1)})
	case "stopped":
		return d.step(agent.StepStopped{Step: arg(0)})
	case "begun":
		return d.step(agent.StepBegun{Step: arg(0), Reason: arg(1)})
	case "judge":
		return d.step(agent.JudgeAgain{Step: arg(0)})
	case "stands":
		return d.step(agent.EffectStands{Step: arg(0), Result: agent.JSON(after(1))})
	case "verdict":
		v := agent.Verdict{ID: id, Gate: arg(0), Verdict: agent.VerdictValue(arg(1)), Reason: kv["reason"], Principal: who, Digest: kv["digest"],
			Again: kv["again"] == "true"}
		if len(lines) > 1 {
			v.Result = agent.JSON(strings.TrimSpace(lines[1]))
		}
		for _, g := range d.m.Run().Gates {
			if g.ID == v.Gate && v.Digest == "" {
				v.Digest = g.Digest
			}
		}
		return d.step(agent.VerdictGiven{Verdict: v})
	case "pass":
		dur, err := time.ParseDuration(arg(0))
		require.NoError(d.t, err)
		d.now = d.now.Add(dur)
		return d.step(agent.GateTimerFired{Gate: arg(1)})
	case "cancel":
		return d.step(agent.CancelRun{ID: id, Principal: who, Reason: kv["reason"], Undo: agent.UndoScope(kv["undo"])})
	case "amend":
		return d.step(agent.AmendRun{ID: id, Principal: who, Fields: agent.JSON(fields), Reason: kv["reason"]})
	case "pause":
		return d.step(agent.PauseRun{ID: id, Principal: who, Reason: kv["reason"]})
	case "resume":
		return d.step(agent.ResumeRun{ID: id, Principal: who, Reason: kv["reason"]})
	case "undo":
		return d.step(agent.UndoSteps{ID: id, Principal: who, Steps: list, Reason: kv["reason"]})
	case "repair": // of the run so far, in a run of its own
		p, err := agent.RepairOf(d.events, agent.UndoSteps{ID: id, Steps: list, Reason: kv["reason"]})
		if err != nil {
			return err.Error() + "\n"
		}
		def, key := d.m.Definition(), "r"+d.m.Run().Key
		d.m, d.events = agent.NewMachine(def), nil
		return d.step(agent.Started{Tenant: "acme", Key: key, FirstRunID: "run-2", Version: 1, Rules: agent.Rules, Limits: def.Limits(),
			Fingerprint: "f", Principal: who, User: "user", Repair: p})
	case "told":
		return told(d.m.Run())
	case "hold":
		d.m.Hold()
		return ""
	case "snapshot": // through JSON, as the next Temporal run gets it
		data, err := json.Marshal(d.m.Snapshot())
		require.NoError(d.t, err)
		var s agent.Snapshot
		require.NoError(d.t, json.Unmarshal(data, &s))
		d.m, err = agent.Restore(d.m.Definition(), s)
		require.NoError(d.t, err)
		return d.step(agent.SnapshotLoaded{Rules: agent.Rules, RunID: arg(0)})
	case "provenance":
		return fmt.Sprintf("%+v\n", d.m.Run().Provenance[arg(0)])
	case "malformed":
		return d.step(agent.Malformed{Name: arg(0), Reason: arg(1)})
	case "state":
		return d.m.Run().State.String() + "\n"
	case "confirmed":
		return fmt.Sprintln(len(d.m.Run().Confirmed), "confirmed,", len(d.m.Run().Shown), "shown")
	}
	d.t.Fatalf("unknown command %q", verb)
	return ""
}

func (d *driver) step(in agent.Input) string {
	had := d.m.Run().Seq
	cmds, receipt := d.m.Step(d.now, "", in)
	var out strings.Builder
	for _, e := range d.m.Batch().Events {
		if e.Seq <= had {
			continue
		}
		d.events = append(d.events, e)
		fmt.Fprintf(&out, "%d %s", e.Seq, e.Type)
		if e.Step != "" {
			fmt.Fprintf(&out, " %s", e.Step)
		}
		fmt.Fprintln(&out, brief(e))
	}
	for _, c := range cmds {
		fmt.Fprintln(&out, "> "+show(c))
	}
	if receipt.Status != agent.Accepted {
		fmt.Fprintf(&out, "receipt %s", receipt.Status)
		if receipt.Reason != "" {
			fmt.Fprintf(&out, ": %s", receipt.Reason)
		}
		if receipt.Gate != nil {
			fmt.Fprintf(&out, " [gate %s %s]", receipt.Gate.ID, receipt.Gate.Status)
		}
		fmt.Fprintln(&out)
	}
	if took := receipt.Took; took != nil && took.How != agent.TookNow && took.How != agent.TookQueued {
		fmt.Fprintf(&out, "receipt %s", took.How)
		if took.Turn > 0 {
			fmt.Fprintf(&out, ", turn %d", took.Turn)
		}
		if len(took.Stopping) > 0 {
			fmt.Fprintf(&out, ", stops %s", strings.Join(took.Stopping, " "))
		}
		fmt.Fprintln(&out)
	}
	r := d.m.Run()
	fmt.Fprintf(&out, "= %s", r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&out, " (%s)", r.Reason)
	}
	fmt.Fprintf(&out, " %s\n", r.Phase)
	requireReduces(d.t, d.events, r)
	return out.String()
}

func requireReduces(t require.TestingT, events []agent.Event, r *agent.Run) {
	again, err := agent.Reduce(events)
	require.NoError(t, err)
	want, err := json.Marshal(r)
	require.NoError(t, err)
	got, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "Reduce(events) is not the run")
}

// brief is an event's data in few words: what a reader of a script checks.
func brief(e agent.Event) string {
	switch e.Type {
	case agent.EventStarted:
		return ""
	case agent.EventProposal:
		var p agent.Proposal
		must(json.Unmarshal(e.Data, &p))
		return fmt.Sprintf(" %d calls %q", len(p.Calls), p.Text)
	case agent.EventGateOpened:
		var g agent.GateOpenedData
		must(json.Unmarshal(e.Data, &g))
		s := fmt.Sprintf(" %q for %v reads %v", g.Gate.Title, g.Gate.Roles, g.Gate.Reads)
		if len(g.Gate.Rulings) > 0 {
			s += fmt.Sprintf(" rulings %q", g.Gate.Rulings)
		}
		return s + " (" + g.Gate.Policy + ")"
	case agent.EventVerdict:
		var v agent.VerdictData
		must(json.Unmarshal(e.Data, &v))
		return fmt.Sprintf(" %s by %s: %s %s", v.Verdict.Verdict, v.Verdict.Principal.Subject, v.Judgement, v.Reason)
	case agent.EventRulingMade:
		var v agent.RulingMadeData
		must(json.Unmarshal(e.Data, &v))
		return fmt.Sprintf(" %s: %s", v.Ruling.Tool, v.Ruling.Reason)
	case agent.EventStepStarted:
		var s agent.StepStartedData
		must(json.Unmarshal(e.Data, &s))
		out := fmt.Sprintf(" %s %s %s by %s", s.Tool, s.Args, s.Status, s.By)
		if s.Undoes != "" {
			out += ", undoes " + s.Undoes
		}
		if s.Ordinal > 0 {
			out += fmt.Sprintf(" ordinal %d", s.Ordinal)
		}
		if s.Reason != "" {
			out += ": " + s.Reason
		}
		return out
	case agent.EventMessage:
		var v agent.MessageData
		must(json.Unmarshal(e.Data, &v))
		if v.Policy != "" {
			return fmt.Sprintf(" %s %q %s", v.ID, v.Text, v.Policy)
		}
		return fmt.Sprintf(" %s %q", v.ID, v.Text)
	case agent.EventGateClosed:
		var v agent.GateClosedData
		must(json.Unmarshal(e.Data, &v))
		out := fmt.Sprintf(" %s", v.Status)
		if v.By != nil {
			out += " by " + v.By.Subject
			if !v.Verified {
				out += " (unverified)"
			}
		}
		return out + ": " + v.Reason
	case agent.EventCancelRequested:
		var v agent.CancelRequestedData
		must(json.Unmarshal(e.Data, &v))
		if v.Undo != "" {
			return " undo " + string(v.Undo)
		}
		return ""
	case agent.EventInterruptSettled:
		var v agent.InterruptSettledData
		must(json.Unmarshal(e.Data, &v))
		return " " + v.Account
	}
	return " " + e.Data.String()
}

// told is what the next turn opens with.
func told(r *agent.Run) string {
	var out strings.Builder
	for _, it := range r.Opening {
		fmt.Fprintf(&out, "%s %s\n", it.Kind, it.Text)
	}
	return out.String()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func show(c agent.Command) string {
	switch c := c.(type) {
	case agent.CallModel:
		if c.View.LastWord {
			return fmt.Sprintf("call model, turn %d, the last word", c.View.Turn)
		}
		return fmt.Sprintf("call model, turn %d", c.View.Turn)
	case agent.CancelModel:
		return fmt.Sprintf("let go of the model, turn %d", c.Turn)
	case agent.RunStep:
		if u := c.Task.Undoes; u != nil {
			return fmt.Sprintf("run %s %s, which undoes %s %s", c.Task.Step, c.Task.Tool, u.Step, u.Tool)
		}
		return fmt.Sprintf("run %s %s", c.Task.Step, c.Task.Tool)
	case agent.StopStep:
		if c.Undo {
			return fmt.Sprintf("stop %s, also when it has begun", c.Task.Step)
		}
		return "stop " + c.Task.Step
	case agent.CancelStep:
		return "let go of " + c.Step
	case agent.OpenGate:
		s := "gate " + c.Gate
		if c.ExpiresAt != nil {
			s += " until " + c.ExpiresAt.Format(time.RFC3339)
		}
		if c.Lookup != nil {
			s += ", does its effect stand?"
		}
		return s
	case agent.Resolve:
		if c.Refused != "" {
			return "tell the ledger of " + c.Task.Step + ": " + c.Refused
		}
		return "tell the ledger of " + c.Task.Step + ": it happened, " + c.Result.String()
	case agent.CloseGate:
		return "gate " + c.Gate + " closes"
	case agent.Record:
		return "record"
	case agent.Finish:
		return "finish " + string(c.Status)
	}
	return fmt.Sprintf("%T", c)
}
