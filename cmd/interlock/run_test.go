package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/replaytests"
	"interlock/starter"
)

func TestRun_FromStartToEnd(t *testing.T) {
	w := newWorld(t)
	address := "acme/refund/cli-whole"
	began := decoded[begun](t, w, "run", "start", address, "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--id", "one",
		"--message", "Please refund order 1042, it broke", "--wait")
	require.True(t, began.New)
	require.Equal(t, agent.RunWaiting, began.Now.Status)
	require.Equal(t, agent.KindAsk, began.Now.Gates[0].Kind)
	again := decoded[begun](t, w, "run", "start", address, "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--id", "one",
		"--message", "Please refund order 1042, it broke")
	require.False(t, again.New, "the same start is the same run")
	require.Equal(t, began.FirstRunID, again.FirstRunID)

	said := decoded[sent](t, w, "run", "message", address, "yes, that one", "--as", "c-017", "--id", "two", "--wait")
	require.Equal(t, agent.Accepted, said.Receipt.Status)
	require.Equal(t, "3.1", said.Now.Gates[0].ID)
	repeat := decoded[sent](t, w, "run", "message", address, "yes, that one", "--as", "c-017", "--id", "two")
	require.Equal(t, said.Receipt.Seq, repeat.Receipt.Seq, "nothing was said twice")

	run := decoded[agent.Run](t, w, "run", "get", address)
	require.Equal(t, "pay", run.Phase)
	text := w.do(t, "run", "get", address)
	for _, want := range []string{"acme/refund/cli-whole is waiting for gate in phase pay", "find_order's result (step 1.1)", "open for ", "interlock gate show acme/refund/cli-whole 3.1",
		"issue_refund (amount = 89.90 EUR, order_id = 1042)", "turns                 3 of 500", "by c-017, unverified"} {
		require.Contains(t, text, want)
	}
	why := decoded[starter.Why](t, w, "run", "why", address)
	require.Contains(t, why.Sentence, "waits for a person with role refunds at gate 3.1")
	require.Contains(t, w.do(t, "run", "why", address), "next: interlock gate show acme/refund/cli-whole 3.1")

	decided := decoded[sent](t, w, "gate", "approve", address, "3.1", "--digest", said.Now.Gates[0].Digest, "--as", "ann", "--role", "refunds", "--wait")
	require.Equal(t, agent.RunCompleted, decided.Now.Status)
	require.Contains(t, decided.Now.Reply.Text, "on its way back")

	events := lines(t, w.do(t, "run", "watch", address, "-o", "jsonl"))
	require.Equal(t, "started", events[0]["type"])
	require.Equal(t, "completed", events[len(events)-1]["type"])
	part := decoded[[]agent.Event](t, w, "run", "watch", address, "--from", "10")
	require.Len(t, part, len(events)-9)
	require.Equal(t, int64(10), part[0].Seq)
	require.Contains(t, w.do(t, "run", "watch", address), "reviewer  approve gate 3.1 as ann (refunds), unverified (valid)")
}

func TestRun_List(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"list-1", "list-2", "list-3"} {
		w.do(t, "run", "start", "lists/refund/"+key, "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--wait")
	}
	w.do(t, "run", "pause", "lists/refund/list-2", "--reason", "holiday", "--as", "ann")
	first := decoded[page](t, w, "run", "list", "--tenant", "lists", "--limit", "2")
	require.Len(t, first.Runs, 2)
	require.Equal(t, "lists/refund/list-3", first.Runs[0].Address)
	second := decoded[page](t, w, "run", "list", "--tenant", "lists", "--limit", "2", "--after", first.After)
	require.Equal(t, "lists/refund/list-1", second.Runs[0].Address)
	require.Empty(t, second.After)
	w.listed(t, 1, "--tenant", "lists", "--status", "paused", "--reason", "asked by ann")
	paused := lines(t, w.do(t, "run", "list", "--tenant", "lists", "--status", "paused", "-o", "jsonl"))
	require.Len(t, paused, 1)
	require.Equal(t, "asked by ann: holiday", paused[0]["reason"])
	require.Contains(t, w.do(t, "run", "list", "--tenant", "lists", "--user", "c-017"), "waiting  collect")
	require.Contains(t, w.do(t, "run", "list", "--tenant", "nobody"), "There are no such runs.")
	require.Contains(t, w.do(t, "run", "list", "--tenant", "nobody", "-o", "json"), `"runs": []`)
}

// listed waits until a list has so many runs: its rows follow the run.
func (w *world) listed(t *testing.T, want int, filter ...string) (p page) {
	t.Helper()
	for range 50 {
		if p = decoded[page](t, w, append([]string{"run", "list"}, filter...)...); len(p.Runs) == want {
			return p
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Len(t, p.Runs, want, "%v", filter)
	return p
}

func TestRun_AmendPauseResumeCancel(t *testing.T) {
	w := newWorld(t)
	address := w.atGate(t, "cli-steer")
	w.do(t, "run", "amend", address, "order_id=1043", "--as", "ann", "--reason", "typo")
	run := decoded[agent.Run](t, w, "run", "get", address)
	require.Contains(t, run.State.String(), `"order_id":"1043"`, "a field that holds a text gets one")
	require.Contains(t, w.do(t, "run", "get", address), "set from outside by ann")
	require.Contains(t, w.do(t, "gate", "show", address, "3.1"), "void", "what it showed has changed")

	require.Contains(t, w.do(t, "run", "pause", address, "--reason", "lunch", "--as", "ann"), "taken in")
	r := w.command().run(t, "run", "resume", address, "acme/refund/nobody", "--as", "ann", "--note", "back")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.out, address+": resumed")
	require.Contains(t, r.out, "acme/refund/nobody: not resumed: ")
	require.Contains(t, r.err, "1 of 2 runs were not resumed")

	require.Contains(t, w.do(t, "run", "cancel", address, "--reason", "enough", "--as", "ann", "--wait"), "cancelled")
	r = w.command().run(t, "run", "message", address, "hello?", "--as", "c-017")
	require.Equal(t, exitEnded, r.code)
	require.Contains(t, r.err, "the run has ended (cancelled)")
}

func TestRun_ResumeAll(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"r1", "r2", "other"} {
		w.do(t, "run", "start", "resume/refund/"+key, "--body", `{"customer_id":"c-017"}`, "--as", "c-017", "--wait")
		who := "night"
		if key == "other" {
			who = "ann"
		}
		w.do(t, "run", "pause", "resume/refund/"+key, "--as", who)
	}
	w.listed(t, 3, "--tenant", "resume", "--status", "paused")
	found := lines(t, w.do(t, "run", "resume", "--all", "--tenant", "resume", "--reason", "asked by night", "--as", "ann", "-o", "jsonl"))
	require.Len(t, found, 2)
	left := w.listed(t, 1, "--tenant", "resume", "--status", "paused")
	require.Equal(t, "resume/refund/other", left.Runs[0].Address)
	require.Contains(t, w.do(t, "run", "resume", "--all", "--tenant", "resume", "--reason", "budget:", "--as", "ann"), "No run is paused for that.")
}

func TestRun_Export(t *testing.T) {
	w := newWorld(t)
	address, dir := w.atGate(t, "cli-export"), t.TempDir()
	history, script, journal := filepath.Join(dir, "h.json"), filepath.Join(dir, "s.txt"), filepath.Join(dir, "j.json")
	w.do(t, "run", "export", address, "--history", history, "--script", script, "--journal", journal)
	require.NoError(t, replaytests.CheckFile(history, refund.Agent(&shop.Shop{}, mail.Client{})))
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# acme/refund/cli-export"))

	var doc struct {
		Run    *agent.Run
		Events []agent.Event
	}
	text, err = os.ReadFile(journal)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &doc))
	run, err := agent.Reduce(doc.Events)
	require.NoError(t, err)
	require.Equal(t, run.Seq, doc.Run.Seq)
	require.Equal(t, run.State, doc.Run.State)
	require.Equal(t, string(text), w.do(t, "run", "export", address, "--journal", "-"))

	r := w.command().run(t, "run", "export", address, "--journal", journal)
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "exists: name another file")
}
