package workflows_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/tool"
)

// sendOfABatch notes the calls of a batch, with their keys, and stops in the last two.
func (c childConfig) sendOfABatch(_ context.Context, key tool.Key, a text) (text, error) {
	if err := noteOfABatch(c.Dir, key, a); err != nil {
		return a, err
	}
	if a.Text == "batch c" || a.Text == "batch d" {
		c.reached("in the batch")
	}
	return a, nil
}

// noteOfABatch leaves a line that outlives a process.
func noteOfABatch(dir string, key tool.Key, a text) error {
	if !strings.HasPrefix(a.Text, "batch ") {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, "batch"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s\n", a.Text, key)
	return err
}

// batching has a run that was told so make four calls at once.
func batching(otherwise llm.Model) llm.Model {
	return asked(func(req llm.Request) llm.Model {
		v := req.View
		if len(v.Turns) == 0 || len(v.Turns[0].Opening) == 0 || v.Turns[0].Opening[0].Text != "batch" {
			return otherwise
		}
		if v.Turn == 1 {
			return says(scripted.Then(call("send", "batch a"), call("send", "batch b"), call("send", "batch c"), call("send", "batch d")))
		}
		return says(scripted.Say("All four are sent."))
	})
}

// A kill in the middle of four calls, two of which are done: those are not made
// again, the others are, under their keys, and a message that comes meanwhile is
// answered behind them.
func TestCrash_Batch(t *testing.T) {
	t.Parallel()
	w := idleWorld(t, false)
	db := openLabDB(t, w.file("product.db"))
	t.Cleanup(func() { _ = db.Close() })
	kill := w.child("in the batch", true)
	address := w.start("k")
	w.say(address, "batch")
	w.until(address, "two are done", func(r *agent.Run) bool {
		return len(r.Steps) == 4 && r.Steps[0].Status == agent.StepDone && r.Steps[1].Status == agent.StepDone
	})
	noted := func() []string {
		b, err := os.ReadFile(w.file("batch"))
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	eventually(t, "all have begun", func() bool { return len(noted()) == 4 })
	kill()
	w.signal(address, signals.NameMessage, signals.Message{ID: "m", Principal: customer, Text: "and?"})
	model := watch(batching(nil))
	w.serve(model, lab{db: db, undo: &labUndo{}, send: func(_ context.Context, key tool.Key, a text) (text, error) {
		return a, noteOfABatch(w.dir, key, a)
	}}.agent())
	run := w.until(address, "an answer", func(r *agent.Run) bool { return waiting("user")(r) && r.Turn == 2 })
	for _, s := range run.Steps {
		require.Equal(t, agent.StepDone, s.Status, s.ID)
	}
	all := noted()
	slices.Sort(all)
	require.Len(t, all, 6, "the last two, once more")
	require.Len(t, slices.Compact(all), 4, "each under its key")
	var order []string
	for _, m := range model.seen(t)[0].Messages {
		switch {
		case m.Role == llm.RoleTool:
			order = append(order, "answer")
		case strings.Contains(m.Text, "and?"):
			order = append(order, "message")
		}
	}
	require.Equal(t, []string{"answer", "answer", "answer", "answer", "message"}, order)
	w.cancelled(address)
}
