// Package replaytests replays recorded histories of runs with the present code
// and compares what it would do now with what was done then.
//
//	func TestReplay(t *testing.T) {
//		replaytests.Run(t, "testdata/histories", orders.Agent(shop), orders.AgentV2(shop))
//	}
//
// Keep the histories of some runs that matter, one of each kind, among the
// tests of the agent, and add one whenever something went wrong: [Export] writes
// them, and `interlock run export --history` does.
//
// Temporal's own replay compares commands: their order, types and ids. It does
// not look at arguments, and that is where most of a run's decisions are. A
// Commit that computes another amount schedules the same activities with other
// events in them, and so does a changed guard, until the first command that
// differs: such a history replays without a complaint, and the run under way is
// blocked by its journal once the change is deployed. Hence the comparison of
// every activity's arguments with the recorded ones.
//
// The workflows that are no runs (those of notices, sweeps and resolutions of the
// ledger) are replayed in the same way, with whatever agents.
//
// A replay runs no activity. Tools, models and stores are never called, and the
// dependencies of an agent may be zero values.
package replaytests

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"interlock/agent"
	"interlock/workflows"
)

// badPrefix begins the names of histories that must not replay.
const badPrefix = "bad-"

// Run replays every history of a folder (*.json, see [CheckFile]), each in a
// subtest, with the agents given: all versions that runs are pinned to. It fails
// where [Check] does, and where there is no history at all.
//
// A history bad-x.json is one that the present code must fail on, with a message
// that contains the text of bad-x.want beside it: it proves that the test sees
// that kind of change. Run fails when it passes, or fails otherwise.
func Run(t *testing.T, dir string, agents ...*agent.Definition) {
	t.Helper()
	paths, err := histories(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			if err := verify(path, agents...); err != nil {
				t.Error(err)
			}
		})
	}
}

// histories are the files to replay, by name.
func histories(dir string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("replaytests: no histories: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("replaytests: folder %s: %w", dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("replaytests: no histories in %s: a replay test of nothing proves nothing", dir)
	}
	return paths, nil
}

// verify is CheckFile, turned round for a file that must fail.
func verify(path string, agents ...*agent.Definition) error {
	err := CheckFile(path, agents...)
	name := filepath.Base(path)
	if !strings.HasPrefix(name, badPrefix) {
		return err
	}
	sidecar := strings.TrimSuffix(path, ".json") + ".want"
	text, readErr := os.ReadFile(sidecar)
	want := strings.TrimSpace(string(text))
	if readErr != nil || want == "" {
		return fmt.Errorf("history %s must fail, but nothing says how: put a part of the message into %s", name, filepath.Base(sidecar))
	}
	switch {
	case err == nil:
		return fmt.Errorf("history %s replays, and must not: it was recorded with other code, and this test no longer sees such a change (%q)", name, want)
	case !strings.Contains(err.Error(), want):
		return fmt.Errorf("history %s fails, but not with %q:\n%w", name, want, err)
	}
	return nil
}

// Check replays one history with the agents given, and reports the first thing
// that the present code does otherwise: an activity of another type, one more,
// one less, an argument with another value, another local activity, another
// result of the run, or whatever Temporal's own replay finds. Where the
// difference could be named, a *[Difference] is in the error's chain.
//
// The history may be one of a run that has not ended. Its payloads must be as
// the default converter writes them: a codec has to be undone first.
func Check(history *historypb.History, agents ...*agent.Definition) error {
	registry, err := agent.NewRegistry(agents...)
	if err != nil {
		return err
	}
	rec, err := read(history)
	if err != nil {
		return err
	}
	if err := rec.servedBy(registry); err != nil {
		return err
	}
	now := &capture{}
	replayErr := replay(rec, history, registry, now)
	if d := compare(rec, now, replayErr != nil); d != nil {
		if replayErr != nil {
			return fmt.Errorf("%w\n  Temporal's replay: %s\n  %s", d, brief(replayErr), advice)
		}
		return fmt.Errorf("%w\n  Temporal's replay: nothing, it does not compare arguments\n  %s", d, advice)
	}
	if replayErr != nil {
		return fmt.Errorf("run %s does not replay: %s\n  %s", rec.workflowID, brief(replayErr), advice)
	}
	return nil
}

// advice is what to do about a difference.
const advice = `What to do: runs under way would stand still here. Put a change of guards, Commit, phases or state into a new version of the agent, and keep this version registered; a change of the machine's decisions behind run.rules; a change of the interpreter's commands behind workflow.GetVersion. Only before 0.1 may a history be recorded anew, with the reason in the commit.`

// replay runs the workflow over the history, registered as a worker does it.
func replay(rec *recorded, history *historypb.History, registry *agent.Registry, now *capture) error {
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors:                []interceptor.WorkerInterceptor{now},
		DisableRegistrationAliasing: true,
		DisableDeadlockDetection:    true, // a slow machine is no difference
	})
	if err != nil {
		return err
	}
	for name, f := range workflows.New(registry).Registered() {
		r.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
	// The workflow looks at its id; the replayer's own would be refused.
	return r.ReplayWorkflowHistoryWithOptions(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), history,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: rec.workflowID, RunID: rec.runID}})
}

// brief is an error of the replayer without stack traces and requests, which
// name places in the SDK.
func brief(err error) string {
	text := err.Error()
	for _, noise := range []string{"stack_trace:", ", resp:"} {
		text, _, _ = strings.Cut(text, noise)
	}
	return clip(strings.TrimSpace(text), 600)
}
