package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
	"interlock/worker"
)

type seat struct {
	Seat string `json:"seat" set:"tool"`
}

type booking struct {
	Row int `json:"row"`
}

type booked struct {
	Seat string `json:"seat"`
}

// theatre books seats and takes them back, those of row 1 only with a person's leave.
func (w *world) theatre(t *testing.T) (queue string) {
	book := tool.Keyed("book", func(_ context.Context, _ tool.Key, b booking) (booked, error) { return booked{Seat: "s"}, nil },
		func(s *seat, _ booking, b booked) error { s.Seat = b.Seat; return nil })
	book.Undo(tool.Keyed("free", func(context.Context, tool.Key, tool.Done[booking, booked]) (booked, error) { return booked{}, nil },
		func(s *seat, _ tool.Done[booking, booked], _ booked) error { s.Seat = ""; return nil }).
		Gate(tool.Gate[seat, tool.Done[booking, booked]]{Roles: []string{"box_office"},
			When: func(_ agent.Situation[seat], d tool.Done[booking, booked]) bool { return d.Args.Row == 1 }}))
	settings := w.settings
	settings.TaskQueue = "theatre"
	def := agent.Define(agent.Spec[struct{}, seat]{Name: "theatre", Version: 1, Instructions: "Book.", Init: func(struct{}) (seat, error) { return seat{}, nil },
		Phases: []agent.Phase[seat]{{Name: "work", Tools: []agent.Tool[seat]{book}, Moves: []agent.Move[seat]{{To: "end"}}},
			{Name: "end", Final: true, Say: func(agent.Situation[seat]) string { return "Bye." }}}})
	model := scripted.Func("scripted", func(req llm.Request) llm.Response {
		switch said, fresh := scripted.NewMessage(req.View); {
		case fresh && said == "book":
			return scripted.Then(scripted.Call("book", booking{1}), scripted.Call("book", booking{2}))
		case fresh && said == "bye":
			return scripted.MoveTo("end")
		}
		return scripted.Say("Done.")
	})
	wk, err := worker.New(worker.Config{Settings: settings, Client: w.client, Store: w.store, Model: model, Log: w.log}, def)
	require.NoError(t, err)
	require.NoError(t, wk.Start(context.Background()))
	t.Cleanup(wk.Stop)
	return settings.TaskQueue
}

func TestStep_Undo(t *testing.T) {
	w := newWorld(t)
	queue := w.theatre(t)
	address := "acme/theatre/undo-" + time.Now().Format("150405.000")
	do := func(args ...string) []string { return append(args, "--task-queue", queue) }
	w.do(t, do("run", "start", address, "--message", "book", "--as", "c", "--wait")...)

	code := func(want int, says string, args ...string) {
		t.Helper()
		r := w.command().run(t, do(args...)...)
		require.Equal(t, want, r.code, r.err)
		require.Contains(t, r.err, says)
	}
	code(exitUsage, "an undo needs --reason", "step", "undo", address, "1.1")
	code(exitNotFound, "step 7.1 cannot be undone: the run has no such step", "step", "undo", address, "7.1", "--reason", "x")
	code(exitUsage, "step 1.1 is named twice", "step", "undo", address, "1.1", "1.1", "--reason", "x")
	code(exitNotFound, "there is no run acme/theatre/none", "step", "undo", "acme/theatre/none", "1.1", "--reason", "x")

	r := decoded[undone](t, w, do("step", "undo", address, "1.2", "--reason", "ill", "--as", "olga", "--id", "u-1", "--wait")...)
	require.Nil(t, r.Repair)
	require.Equal(t, agent.Accepted, r.Receipt.Status)
	require.Empty(t, r.Standing)
	again := decoded[undone](t, w, do("step", "undo", address, "1.2", "--reason", "ill", "--as", "olga", "--id", "u-1")...)
	require.Equal(t, r.Receipt.Seq, again.Receipt.Seq, "asked for once")
	code(exitConflict, "it was undone by step", "step", "undo", address, "1.2", "--reason", "x")
	text := w.do(t, do("run", "get", address)...)
	require.Contains(t, text, "book (row = 2), undone by step 2.1")
	require.Contains(t, text, "undoes step 1.2")

	// It has ended: a repair run does it, at whose gate somebody decides.
	w.do(t, do("run", "message", address, "bye", "--as", "c", "--wait")...)
	text = w.do(t, do("run", "watch", address)...)
	require.Contains(t, text, "step 2.1 runs, to undo step 1.2: free (")
	require.Contains(t, text, "step 1.2 was undone by step 2.1")
	shown := w.do(t, do("step", "undo", address, "1.1", "--reason", "ill", "--as", "olga", "--wait")...)
	require.Contains(t, shown, address+" has ended: a repair run undoes its steps: "+address+"+undo-")
	require.Contains(t, shown, "not undone: step 1.1; see interlock run why "+address+"+undo-")
	r = decoded[undone](t, w, do("step", "undo", address, "1.1", "--reason", "ill", "--as", "olga", "--wait")...)
	require.False(t, r.Repair.New)
	require.Len(t, r.Now.Gates, 1)
	repair, gate := r.Repair.Address, r.Now.Gates[0]
	require.Contains(t, w.do(t, do("run", "get", repair)...), "repairs    "+address)
	require.Contains(t, w.do(t, do("run", "why", repair)...), "undoes steps of "+address+", and waits for a person with role box_office at gate "+gate.ID)
	w.do(t, do("gate", "reject", repair, gate.ID, "--digest", gate.Digest, "--reason", "sold out", "--as", "ann", "--role", "box_office", "--wait")...)
	require.Contains(t, w.do(t, do("run", "why", repair)...), "not undone: 1.1 book: stands, its undo, step "+gate.ID+", free, was rejected by ann: sold out")
	require.Contains(t, w.do(t, do("run", "list", "--address", repair)...), "completed")
	require.Contains(t, w.do(t, do("run", "get", address)...), "repaired   by "+repair+", completed: 1.1 book stands")
	require.Contains(t, w.do(t, do("run", "why", address)...), "; repaired by "+repair+", completed: 1.1 book stands")
	text = w.do(t, do("run", "watch", repair)...)
	require.Contains(t, text, "olga, unverified asks that step 1.1 be undone: ill")
	code(exitEnded, "the run has ended", "run", "message", repair, "hello", "--as", "c")
}
