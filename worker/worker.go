// Package worker composes a process that serves agents: their workflows, their
// activities, a store and models, on a Temporal task queue.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"interlock/activities"
	"interlock/agent"
	"interlock/config"
	"interlock/llm"
	"interlock/store"
	"interlock/token"
	"interlock/workflows"
)

// Config is what a worker is made of.
type Config struct {
	Settings config.Config
	Client   client.Client // required; the caller closes it
	Store    store.Store   // required; the caller closes it
	// Model runs every agent that Models does not name.
	Model  llm.Model
	Models map[string]llm.Model // by agent
	// Trust is what signed verdicts and messages are checked by, as a whole; without
	// keys and directory in it, what Settings.Tokens names.
	Trust token.Trust
	// Notices are told where Settings.Notices names targets.
	Notices NoticeOptions
	Log     *slog.Logger // Defaults to slog.Default()
}

// Worker serves agents until it is stopped.
type Worker struct {
	sdk    sdk.Worker
	config Config
	agents *agent.Registry
	once   sync.Once
	failed chan error // what the SDK cannot go on after
	close  func()     // ends what the worker itself has opened
	told   *activities.Notices
	hush   func() // ends the dispatcher of notices
}

// heartbeatThrottle bounds how long a cancel takes to reach an activity.
const heartbeatThrottle = 1500 * time.Millisecond

// New makes a worker. It reports every mistake of the agents and of the
// configuration at once. Keep old versions of an agent among agents for as
// long as runs are pinned to them. A key set at a URL is fetched here for the first
// time, and then until Stop.
func New(c Config, agents ...*agent.Definition) (*Worker, error) {
	registry, err := agent.NewRegistry(agents...)
	errs := []error{err, c.Settings.Validate()}
	if c.Client == nil {
		errs = append(errs, errors.New("worker: Client is missing"))
	}
	if c.Store == nil {
		errs = append(errs, errors.New("worker: Store is missing"))
	}
	for _, name := range registry.Names() {
		if c.Model == nil && c.Models[name] == nil {
			errs = append(errs, fmt.Errorf("worker: agent %s has no model: set Model or Models[%q]", name, name))
		}
	}
	if t := c.Settings.Tokens; c.Trust.Directory != nil && c.Trust.Keys == nil && t.Keys+t.JWKS != "" {
		errs = append(errs, errors.New("worker: Trust has a Directory and no Keys, and tokens.keys or tokens.jwks names some: Trust is taken as a whole, so give it both"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	w := &Worker{agents: registry, failed: make(chan error, 1), close: func() {}, hush: func() {}}
	if c.Trust.Keys == nil && c.Trust.Directory == nil {
		if c.Trust, w.close, err = trusted(c.Settings.Tokens, c.Log); err != nil {
			return nil, err
		}
	}
	if w.told, err = telling(c.Settings.Notices, c.Notices); err != nil {
		w.close()
		return nil, err
	}
	w.config = c
	if n := c.Settings.Worker.CacheSize; n >= 0 {
		sdk.SetStickyWorkflowCacheSize(n) // of the whole process; before any worker is made
	}
	w.sdk = sdk.New(c.Client, c.Settings.TaskQueue, sdk.Options{
		MaxConcurrentActivityExecutionSize: c.Settings.Worker.MaxActivities,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		DefaultHeartbeatThrottleInterval:   heartbeatThrottle,
		WorkerStopTimeout:                  c.Settings.ShutdownTimeout,
		DisableRegistrationAliasing:        true,
		OnFatalError:                       w.fail,
	})
	Register(w.sdk, registry, &activities.Activities{Agents: registry, Store: c.Store, Model: c.model, Alive: c.alive, Trust: c.Trust, Notices: w.told, Log: c.Log})
	return w, nil
}

func (c Config) model(def *agent.Definition) (llm.Model, error) {
	if m := c.Models[def.Name]; m != nil {
		return m, nil
	}
	if c.Model != nil {
		return c.Model, nil
	}
	return nil, fmt.Errorf("agent %s has no model on this worker", def.Name)
}

// alive asks Temporal whether it has a chain of runs under way.
func (c Config) alive(ctx context.Context, address, firstRunID string) (bool, error) {
	described, err := c.Client.DescribeWorkflow(ctx, address, "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info := described.RawResponse.GetWorkflowExecutionInfo()
	return info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING && (firstRunID == "" || info.GetFirstRunId() == firstRunID), nil
}

// Register registers the workflows and activities of agents under the names
// that histories hold.
func Register(r sdk.Registry, registry *agent.Registry, acts *activities.Activities) {
	for name, f := range workflows.New(registry).Registered() {
		r.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
	for name, f := range acts.Registered() {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// Start begins to poll, after it has noted in the store which agents it serves.
func (w *Worker) Start(ctx context.Context) error {
	for _, name := range w.agents.Names() {
		for _, def := range w.agents.Versions(name) {
			description, err := agent.Encode(def.Description())
			if err != nil {
				return fmt.Errorf("worker: the description of %s/v%d: %w", name, def.Version, err)
			}
			d := store.Deployment{Agent: name, Version: def.Version, Fingerprint: def.Fingerprint(), Description: description, At: time.Now().UTC().Truncate(time.Microsecond)}
			if err := w.config.Store.Deployed(ctx, d); err != nil {
				return fmt.Errorf("worker: %w", err)
			}
		}
	}
	if err := w.sdk.Start(); err != nil {
		return fmt.Errorf("worker: task queue %s: %w", w.config.Settings.TaskQueue, err)
	}
	w.hush = w.dispatch()
	w.config.Log.Info("worker polls", "task_queue", w.config.Settings.TaskQueue, "agents", w.agents.Names())
	return nil
}

// Stop takes no new work, lets what runs end within the shutdown timeout, and
// returns. What did not end runs again on another worker.
func (w *Worker) Stop() {
	w.once.Do(func() {
		w.hush()
		w.sdk.Stop()
		w.close()
	})
}

// fail keeps the first error that ended the worker.
func (w *Worker) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// Run starts the worker and stops it when ctx ends, which is no error. It
// returns one where the worker cannot go on, as when its namespace is gone.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.Start(ctx); err != nil {
		w.close()
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case failure := <-w.failed:
		err = fmt.Errorf("worker: task queue %s: %w", w.config.Settings.TaskQueue, failure)
	}
	w.Stop()
	return err
}
