package worker

import (
	"context"
	"errors"
	"log/slog"

	"interlock/agent"
)

// Serve serves agents until ctx ends, then stops in order: no new work, what
// runs may end within the shutdown timeout, then the connections. What c leaves
// out of Client, Store and Model it makes as c.Settings says, and closes again.
//
// An error says what could not be started, or what ended the worker by itself;
// a mistake of the configuration is a *[config.Error].
func Serve(ctx context.Context, c Config, agents ...*agent.Definition) (err error) {
	if err := c.Settings.Validate(); err != nil {
		return err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	var closers []func() error
	defer func() {
		for i := range closers {
			err = errors.Join(err, closers[len(closers)-1-i]())
		}
	}()
	// First what needs no network: a mistake there is told at once.
	if c.Model == nil && !c.modelled(agents) {
		if c.Model, err = OpenModel(c.Settings); err != nil {
			return err
		}
	}
	if c.Store == nil {
		if c.Store, err = OpenStore(ctx, c.Settings); err != nil {
			return err
		}
		closers = append(closers, c.Store.Close)
	}
	if c.Client == nil {
		if c.Client, err = Dial(ctx, c.Settings, c.Log); err != nil {
			return err
		}
		closers = append(closers, func() error { c.Client.Close(); return nil })
	}
	w, err := New(c, agents...)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// modelled reports that each agent has a model of its own.
func (c Config) modelled(agents []*agent.Definition) bool {
	for _, a := range agents {
		if c.Models[a.Name] == nil {
			return false
		}
	}
	return true
}
