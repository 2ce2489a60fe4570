package orders_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/orders"
	"interlock/agent"
	"interlock/agenttest"
	"interlock/localtemporal"
	"interlock/replaytests"
	"interlock/store/pgtest"
)

// TestGuide runs the commands of docs/hour.md, as they stand there, against real
// processes; only the model is played.
func TestGuide(t *testing.T) {
	cli := temporalCLI(t)
	bin := build(t)
	t.Run("on SQLite", func(t *testing.T) {
		t.Parallel()
		testGuide(t, newWorld(t, cli, bin))
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, cli, bin, "INTERLOCK_STORE_DSN="+pgtest.New(t)) // skips where there is no PostgreSQL
		w.begin(t)
		testApproved(t, w)
		require.NoFileExists(t, filepath.Join(w.dir, ".interlock"))
	})
}

func testGuide(t *testing.T, w *world) {
	w.begin(t)
	late := w.start(t, `backend -ticket t-3 -customer c-3 "Please bring order 79 on Friday"`)
	await(t, w.clerk.reached)
	w.stopWorker(t, syscall.SIGKILL) // while the model thinks
	w.startWorker(t)

	testApproved(t, w)
	testExports(t, w)
	require.Empty(t, w.guide.rest(), "commands that nobody has tried")
	testShipped(t, w)

	require.Contains(t, late.finish(t, 0), "Shall I move it?\n", "the run goes on with the next worker")
	w.run(t, `backend -ticket t-3 -customer c-3 "yes please"`) // a Friday needs no dispatcher
	require.Regexp(t, `Order 79 comes on .*\. The change costs 4\.90 EUR\.`, w.run(t, "interlock run watch acme/orders/t-3"))
	require.Zero(t, w.stopWorker(t, syscall.SIGTERM))
	require.Empty(t, w.model.Broken())
}

// begin is step 6, and a worker that serves.
func (w *world) begin(t *testing.T) {
	w.guide.next(t, "temporal server start-dev") // the world has one
	require.Contains(t, w.follow(t, "interlock migrate"), "The schema was brought from version 0 to")
	w.guide.next(t, "export INTERLOCK_MODEL_NAME=") // the world names another
	w.guide.next(t, "worker")
	w.startWorker(t)
}

// testApproved is step 7: a customer says yes, and so does a dispatcher.
func testApproved(t *testing.T, w *world) {
	require.Regexp(t, `^Shall I move it\?\n  day: \d{4}-\d\d-\d\d\n  fee: 25\.00 EUR\n  order_id: 77\n$`, w.follow(t, "backend -ticket t-1"))
	require.Equal(t, "A colleague decides about it.\n", w.follow(t, "backend -ticket t-1"))

	// A list is of the store, which learns of a gate a moment after the customer.
	require.Eventually(t, func() bool { return strings.Contains(w.run(t, "interlock gate list --tenant acme"), "acme/orders/t-1") }, time.Minute, 50*time.Millisecond)
	list := w.follow(t, "interlock gate list")
	require.Contains(t, list, "acme/orders/t-1")
	g := w.gate(t, "t-1")
	require.Regexp(t, `acme/orders/t-1 +`+regexp.QuoteMeta(g.ID)+` .* role dispatch .*Move order 77 to .* for 25\.00 EUR`, list)
	w.env = append(w.env, "GATE="+g.ID, "DIGEST="+g.Digest)
	show := w.follow(t, "interlock gate show")
	require.Contains(t, show, "a fee above 20 needs a dispatcher's approval")
	require.Contains(t, show, g.Digest, "all of it")

	why := w.follow(t, "interlock run why")
	require.Contains(t, why, "waits for a person with role dispatch at gate "+g.ID)
	require.Contains(t, why, "next: interlock gate show acme/orders/t-1 "+g.ID)
	require.Contains(t, w.follow(t, "interlock run pause"), "the run is paused")
	require.Contains(t, w.run(t, "interlock run why acme/orders/t-1"), "the van broke down")
	require.Contains(t, w.follow(t, "interlock run resume"), "acme/orders/t-1: resumed")
	require.Contains(t, w.follow(t, "interlock gate approve"), "approve of gate "+g.ID+" by dana (dispatch)")

	require.Regexp(t, `Order 77 comes on .*\. The change costs 25\.00 EUR\.`, w.run(t, "interlock run watch acme/orders/t-1"))
	require.Contains(t, w.follow(t, "interlock run get"), "completed")
	run := w.get(t, "t-1")
	require.Equal(t, agent.RunCompleted, run.Status)
	require.Equal(t, "ch-77-1", run.state(t).ChangeID)
	require.Equal(t, "n-1", run.state(t).NoticeID)
}

// testExports is the end of step 8: the run becomes a test of either kind.
func testExports(t *testing.T, w *world) {
	for _, dir := range []string{"histories", "scripts/v2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "testdata", dir), 0o700))
	}
	w.follow(t, "interlock run export")
	w.follow(t, "interlock run export")
	require.NoError(t, replaytests.CheckFile(filepath.Join(w.dir, "testdata/histories/t-1.json"), orders.Agent(noShop{}), orders.AgentV2(noShop{})))
	agenttest.Script(t, orders.AgentV2(noShop{}), filepath.Join(w.dir, "testdata/scripts/v2/*.txt"))
}

// testShipped has the parcel leave before the dispatcher has decided.
func testShipped(t *testing.T, w *world) {
	w.run(t, `backend -ticket t-2 -customer c-2 "Please bring order 78 on Saturday"`)
	w.run(t, `backend -ticket t-2 -customer c-2 "yes please"`)
	g := w.gate(t, "t-2")
	require.Empty(t, w.run(t, "backend -ticket t-2 -shipped"))
	require.Empty(t, w.run(t, "backend -ticket t-2 -shipped"), "it is the same amend")
	require.Contains(t, w.run(t, "interlock gate show acme/orders/t-2 "+g.ID), ", void")

	approve := w.start(t, "interlock gate approve acme/orders/t-2 "+g.ID+" --as dana --role dispatch --digest "+g.Digest)
	approve.finish(t, 4)
	require.Contains(t, approve.errors.String(), "the verdict decided nothing")
	require.Contains(t, w.run(t, `interlock run cancel acme/orders/t-2 --reason "it has left"`), "taken in")
	run := w.get(t, "t-2")
	require.Equal(t, agent.RunCancelled, run.Status)
	require.True(t, run.state(t).Shipped)
	require.Empty(t, run.state(t).ChangeID)
}

// temporalCLI is the one that is named, this repository's, or the one on the PATH.
// CI must not go without.
func temporalCLI(t *testing.T) string {
	if own, err := localtemporal.FindCLI("../../bin/temporal"); err == nil && os.Getenv("INTERLOCK_TEMPORAL_CLI") == "" {
		return own
	}
	path, err := localtemporal.FindCLI("")
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return path
}

func (w *world) gate(t *testing.T, ticket string) agent.Gate {
	var list struct{ Gates []struct{ Gate agent.Gate } }
	require.NoError(t, json.Unmarshal([]byte(w.run(t, "interlock gate list -o json --address acme/orders/"+ticket)), &list))
	require.Len(t, list.Gates, 1)
	var shown struct{ Gate agent.Gate }
	require.NoError(t, json.Unmarshal([]byte(w.run(t, "interlock gate show -o json acme/orders/"+ticket+" "+list.Gates[0].Gate.ID)), &shown))
	require.Equal(t, list.Gates[0].Gate.Digest, shown.Gate.Digest)
	return shown.Gate
}

// got is a run as the command shows it.
type got struct {
	Status agent.RunStatus
	State  json.RawMessage
}

func (w *world) get(t *testing.T, ticket string) (g got) {
	require.NoError(t, json.Unmarshal([]byte(w.run(t, "interlock run get -o json acme/orders/"+ticket)), &g))
	return g
}

func (g got) state(t *testing.T) (s orders.State) {
	require.NoError(t, json.Unmarshal(g.State, &s))
	return s
}
