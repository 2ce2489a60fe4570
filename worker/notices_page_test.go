package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"interlock/agent"
	"interlock/notice"
	"interlock/store"
	"interlock/store/sqlite"
	"interlock/store/storetest"
)

// counting is a Temporal that counts what is started, and fails at some point.
type counting struct {
	client.Client
	mu      sync.Mutex
	started map[string]int
	calls   int
	failAt  int
}

func (c *counting) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.calls == c.failAt {
		return nil, errors.New("Temporal is away")
	}
	c.started[o.ID]++
	return nil, nil
}

// A page of 200 events for five targets is gone through in portions: what fails in
// the middle does not begin it again.
func TestDispatcher_AFullPage(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	st, err := sqlite.Open(ctx, filepath.Join(dir, "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	t.Setenv("CHAT", "https://chat.example/x")
	path, text := filepath.Join(dir, "targets.yaml"), "targets:\n"
	for i := range 5 {
		text += fmt.Sprintf("  - {name: t%d, kind: slack, url: 'env:CHAT'}\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	targets, err := notice.Open(path, nil)
	require.NoError(t, err)
	temporal := &counting{started: map[string]int{}, failAt: 350}
	d := &dispatcher{store: st, client: temporal, targets: targets, log: slog.New(slog.DiscardHandler), queue: "q"}

	h := storetest.NewHistory(t, "acme", "1", "r1").Add(agent.EventReply, agent.ReplyData{Text: "before"})
	require.NoError(t, st.Append(ctx, h.Ref, h.Batch(1, h.Last())))
	more, err := d.step(ctx)
	require.NoError(t, err)
	require.False(t, more, "what was before is told to nobody")
	for range feedPage {
		h.Add(agent.EventReply, agent.ReplyData{Text: "hi"})
	}
	require.NoError(t, st.Append(ctx, h.Ref, h.Batch(1, h.Last())))

	begin := d.place
	_, err = d.step(ctx)
	require.ErrorContains(t, err, "Temporal is away")
	place, err := st.Place(ctx, d.reader())
	require.NoError(t, err)
	require.NotEqual(t, begin, place, "three portions are done")
	d.place = "" // as run does after an error
	for more = true; more; {
		more, err = d.step(ctx)
		require.NoError(t, err)
	}
	require.Len(t, temporal.started, 5*feedPage)
	require.LessOrEqual(t, temporal.calls, 5*feedPage+portion+5)
	for id := range temporal.started {
		require.True(t, strings.HasPrefix(id, "interlock.notice/t"), id)
	}
}

// What another dispatcher has told is left to it; a move of its own from a place
// that is another's by now is none.
func TestDispatcher_GoesOnFromAnothersPlace(t *testing.T) {
	ctx := t.Context()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	d := &dispatcher{store: st, queue: "q"}
	require.NoError(t, d.begin(ctx))
	require.NoError(t, st.MovePlace(ctx, d.reader(), d.place, "7"))
	mine, err := d.move(ctx, "3")
	require.NoError(t, err)
	require.False(t, mine)
	require.Equal(t, []string{"7", "7"}, []string{d.place, d.next})
	mine, err = d.move(ctx, "9")
	require.NoError(t, err)
	require.True(t, mine)
}

// A closed gate is told to who decides such gates, although its event does not say
// who that is.
func TestDispatcher_RolesOfAClosedGate(t *testing.T) {
	ctx := t.Context()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "interlock.db"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	h := storetest.NewHistory(t, "acme", "1", "r1").Open("1.1", "refunds").Open("1.2", "finance").CloseGate("1.1", agent.GateApproved).CloseGate("1.2", agent.GateRejected)
	require.NoError(t, st.Append(ctx, h.Ref, h.Batch(1, h.Last())))
	found, _, err := st.Appended(ctx, store.FeedFilter{Types: []agent.EventType{agent.EventGateClosed}})
	require.NoError(t, err)
	d := &dispatcher{store: st, queue: "q", giveUp: time.Hour}
	var got []string
	for _, a := range found {
		told, err := d.tellings(ctx, a, []notice.Target{{Name: "refunds", Roles: []string{"refunds"}}, {Name: "all"}})
		require.NoError(t, err)
		for _, x := range told {
			n, err := notice.Decode(x.Notice)
			require.NoError(t, err)
			got = append(got, x.Target+" "+n.Gate)
		}
	}
	require.Equal(t, []string{"refunds 1.1", "all 1.1", "all 1.2"}, got)
}
