package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/localtemporal"
)

// cli is the temporal CLI as an absolute path, for tests that change folder.
func cli(t *testing.T) string {
	t.Helper()
	path, err := localtemporal.FindCLI("")
	require.NoError(t, err)
	return path
}

// parse decodes stdout, which must be one JSON object and nothing else.
func parse(t *testing.T, out string) report {
	t.Helper()
	var r report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), out)
	require.ErrorIs(t, d.Decode(new(any)), io.EOF)
	return r
}

func TestDemo_ApprovedAsJSON(t *testing.T) {
	t.Parallel()
	r := play(t, context.Background(), nil, "demo", "--decide", "approve", "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	got := parse(t, r.out)
	require.NotEmpty(t, got.Run.FirstRunID)
	got.Run.FirstRunID = ""
	require.JSONEq(t, `{"customer_id":"c-017","order_id":"1042","amount":{"minor":8990,"currency":"EUR"},"refund_id":"r-1042","refunded":{"minor":8990,"currency":"EUR"},"receipt_id":"m-1"}`, got.Run.State.String())
	got.Run.State = nil
	require.Equal(t, runReport{Status: "completed", Phase: "done", Tenant: "acme", ID: "acme/refund/demo", Agent: "refund", Version: 1, Key: "demo"}, got.Run)
	require.Equal(t, []stepReport{{ID: "1.1", Tool: "find_order", Status: "done"}, {ID: "2.1", Tool: "ask", Status: "done"},
		{ID: "3.1", Tool: "issue_refund", Status: "done"}, {ID: "3.2", Tool: "send_receipt", Status: "done"}}, got.Steps)
	require.Len(t, got.Gates, 2)
	require.Equal(t, gateReport{ID: "3.1", Title: "Refund 89.90 EUR for order 1042", Status: "approved", Verdict: "approve", Principal: &reviewer}, got.Gates[1])
	require.Equal(t, agent.GateAnswered, got.Gates[0].Status)
	require.Empty(t, got.Rulings)
	require.Equal(t, []shop.Refund{{ID: "r-1042", OrderID: "1042", Amount: agent.Money{Minor: 8990, Currency: "EUR"}}}, got.Refunds)
	require.Len(t, got.Receipts, 1)
	require.Equal(t, "c-017@customers.example", got.Receipts[0].To)
	require.Equal(t, "m-1", got.Receipts[0].ID)
	require.Greater(t, got.Events, 30)
	require.Greater(t, got.History.Events, int64(40))
	require.Greater(t, got.History.Bytes, int64(10_000))
	require.Equal(t, 4, got.Model.Calls)
	require.Greater(t, got.Model.BytesTotal, int64(got.Model.BytesLast))
	require.Positive(t, got.Model.BytesLast)
	require.Positive(t, got.Model.Tokens)
	for _, key := range []string{`"rulings": []`, `"verified": false`} {
		require.Contains(t, r.out, key)
	}
	require.Contains(t, r.err, "Gate 3.1", "progress is on stderr")
}

func TestDemo_RejectedAsJSON(t *testing.T) {
	t.Parallel()
	r := play(t, context.Background(), nil, "demo", "--decide", "reject", "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	got := parse(t, r.out)
	require.Equal(t, agent.RunCompleted, got.Run.Status)
	require.Equal(t, "declined", got.Run.Phase)
	require.Equal(t, agent.StepRejected, got.Steps[len(got.Steps)-1].Status)
	require.Equal(t, gateReport{ID: "3.1", Title: "Refund 89.90 EUR for order 1042", Status: "rejected", Verdict: "reject", Principal: &reviewer, Reason: defaultReason}, got.Gates[1])
	require.Equal(t, []rulingReport{{ID: "3.1", Tool: "issue_refund", Title: "Refund 89.90 EUR for order 1042", Reads: []string{"order_id", "amount"}, Reason: defaultReason, By: reviewer}}, got.Rulings)
	require.Contains(t, r.out, `"refunds": []`)
	require.Contains(t, r.out, `"receipts": []`)
}

func TestDemo_WithoutATerminalApproves(t *testing.T) {
	t.Parallel()
	keep := filepath.Join(t.TempDir(), "kept")
	r := play(t, context.Background(), nil, "demo", "--keep", keep)
	require.Equal(t, exitOK, r.code, r.err)
	for _, want := range []string{"There is no terminal to ask on", "approves", "role refunds", "order_id = 1042", "until ", "find_order's result (step 1.1)",
		"unverified", "refund r-1042: 89.90 EUR", "history events", "Checked:"} {
		require.Contains(t, r.out, want)
	}
	require.FileExists(t, filepath.Join(keep, "interlock.db"))
	require.Contains(t, r.err, "interlock dev --store-path")
	requireGone(t, keep)
}

func TestDemo_AsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	in := strings.NewReader("perhaps\nreject\napprove, but late\nreject it was worn out\n")
	r := play(t, context.Background(), in, "demo")
	require.Equal(t, exitOK, r.code, r.err)
	require.Contains(t, r.out, "A reject needs a reason")
	require.Contains(t, r.out, "no refund")
	require.Contains(t, r.out, "Refund 89.90 EUR for order 1042, rejected by demo-reviewer: it was worn out")
}

func TestDemo_InputEnds(t *testing.T) {
	t.Parallel()
	r := play(t, context.Background(), strings.NewReader(""), "demo")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "no verdict was given and nothing was refunded")
}

func TestDemo_OtherOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		order, phase string
		refunds      int
	}{{"1024", "declined", 0}, {"1017", "done", 1}} {
		t.Run(c.order, func(t *testing.T) {
			t.Parallel()
			r := play(t, context.Background(), nil, "demo", "--order", c.order, "-o", "json")
			require.Equal(t, exitOK, r.code, r.err)
			got := parse(t, r.out)
			require.Equal(t, c.phase, got.Run.Phase)
			require.Len(t, got.Refunds, c.refunds)
			require.Len(t, got.Receipts, c.refunds)
			for _, g := range got.Gates {
				require.Empty(t, g.Verdict)
			}
		})
	}
}

func TestDemo_GivesUp(t *testing.T) {
	t.Parallel()
	r := play(t, context.Background(), nil, "demo", "--timeout", "100ms")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "gave up after 100ms while starting Temporal")
	require.Empty(t, strings.TrimPrefix(r.out, fmt.Sprintf(intro, (&demo{}).proposer())))
}

// A person may think for as long as it takes.
func TestPatienceStandsStillWhileAPersonThinks(t *testing.T) {
	p := patience{limit: time.Hour}
	ctx, done := p.begin(context.Background())
	defer done()
	resume := p.pause()
	require.False(t, p.timer.Stop(), "the timer runs while it is paused")
	p.limit = time.Millisecond
	resume()
	<-ctx.Done()
	require.Equal(t, errImpatient, context.Cause(ctx))
}

// interruptedAt cancels the command as a signal does when a text appears.
type interruptedAt struct {
	text   string
	cancel func()
	seen   bytes.Buffer
}

func (i *interruptedAt) Write(p []byte) (int, error) {
	i.seen.Write(p)
	if strings.Contains(i.seen.String(), i.text) {
		i.cancel()
	}
	return len(p), nil
}

func TestDemo_InterruptedAnywhere(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"Interlock demo", "Up in", "customer  Please", "yes, that one", "You are the reviewer"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			in, w := io.Pipe() // nobody answers
			defer w.Close()
			var err safe
			folder := t.TempDir()
			a := &app{in: in, terminal: true, env: os.Environ(), err: &err, scratch: scratch{parent: folder},
				out: &interruptedAt{text: at, cancel: func() { cancel(&interrupt{syscall.SIGINT}) }}}
			require.Equal(t, 130, a.run(ctx, []string{"demo"}), err.String())
			require.Contains(t, err.String(), "all that was started is stopped")
			left, _ := filepath.Glob(filepath.Join(folder, "*"))
			require.Empty(t, left)
			requireGone(t, folder)
		})
	}
}

func TestDemo_SignalsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := start(t, "demo")
		p.waitFor(t, "Up in")
		require.Equal(t, 128+int(s), p.end(t, s), &p.err)
		left, err := os.ReadDir(p.tmp)
		require.NoError(t, err)
		require.Empty(t, left)
		requireGone(t, p.tmp)
	}
}

// The check is what the exit code rests on: it must see each thing that the
// verdict does not allow.
func TestCheckFindsWhatIsNotAllowed(t *testing.T) {
	order := shop.Order{ID: "1042", CustomerID: demoCustomer, Total: agent.Money{Minor: 8990, Currency: "EUR"}}
	refund := shop.Refund{ID: "r-1042", OrderID: "1042", Amount: order.Total}
	sent := receipt{"m-1", mail.Receipt{RefundID: "r-1042", OrderID: "1042", CustomerID: demoCustomer, Amount: order.Total}.Message()}
	good := report{Run: runReport{Status: agent.RunCompleted, Phase: "done"}, Refunds: []shop.Refund{refund}, Receipts: []receipt{sent}}
	none := report{Run: runReport{Status: agent.RunCompleted, Phase: "declined"}}
	approve := (&demo{verdict: agent.Approve}).expect(order)
	reject := (&demo{verdict: agent.Reject, reason: "no"}).expect(order)
	foreign := (&demo{verdict: agent.Approve}).expect(shop.Order{ID: "1024", CustomerID: "c-071"})

	require.NoError(t, approve.compare(&good))
	require.NoError(t, foreign.compare(&none))
	require.ErrorContains(t, approve.compare(&none), "the shop's database holds the refunds []")
	require.ErrorContains(t, reject.compare(&good), "the verdict allows []")
	require.ErrorContains(t, reject.compare(&none), "rulings")
	require.ErrorContains(t, foreign.compare(&good), "the verdict allows []")

	twice, less, unmailed := good, good, good
	twice.Refunds = append([]shop.Refund{refund}, refund)
	less.Refunds = []shop.Refund{{ID: "r-1042", OrderID: "1042", Amount: agent.Money{Minor: 8989, Currency: "EUR"}}}
	unmailed.Receipts = nil
	for _, r := range []report{twice, less, unmailed} {
		require.Error(t, approve.compare(&r))
	}
}

// A user changes their mind while three tools are in flight: one screen says what
// ran, what was abandoned, what was undone, and what the model says next.
func TestDemo_Interrupt(t *testing.T) {
	t.Parallel()
	r := play(t, context.Background(), nil, "demo", "--scenario", "interrupt")
	require.Equal(t, exitOK, r.code, r.err)
	require.Less(t, strings.Count(r.out, "\n"), 30, "one screen")
	require.NotContains(t, r.err, "level=", "to be told to stop is no error")
	for _, want := range []string{"three tools are in flight", "Actually, cancel that", "this turn is cut short, taken up by turn 2",
		"book_flight     undone", "reserve_car     done", "compare_hotels  abandoned", "release_flight  done",
		"What code told the model", "I stopped. What stands: car in Zurich.", "Checked: the desk holds the car and no flight."} {
		require.Contains(t, r.out, want)
	}
	r = play(t, context.Background(), nil, "demo", "--scenario", "interrupt", "-o", "json")
	require.Equal(t, exitOK, r.code, r.err)
	var got cutReport
	require.NoError(t, json.Unmarshal([]byte(r.out), &got))
	require.Equal(t, agent.Took{How: agent.TookInterrupted, Turn: 2, Stopping: []string{"1.1", "1.2"}}, got.Took)
	require.Len(t, got.Steps, 4)
}
