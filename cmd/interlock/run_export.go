package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/replaytests"
	"interlock/signals"
	"interlock/store"
)

func (a *app) runExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export ADDRESS", Short: "Writes a run to a file: history, script or journal", Args: cobra.ExactArgs(1),
		Long: `Writes a run to files; - is stdout. A file that exists is left alone.

  --history  Temporal's history, for replay tests (package replaytests)
  --script   the run's inputs as a test of the agent (package agenttest)
  --journal  the run as it stands and all its events, one JSON document

History and script hold what the user, the model and the tools have said, sensitive
values included: they could not be played again without. The journal's are masked,
unless --unmask is given.`,
	}
	history := cmd.Flags().String("history", "", "`file` for Temporal's history")
	script := cmd.Flags().String("script", "", "`file` for the script")
	journal := cmd.Flags().String("journal", "", "`file` for run and events")
	unmask := unmaskFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *history == "" && *script == "" && *journal == "" {
			return usagef("name at least one file: --history, --script or --journal")
		}
		return a.about(*script+*journal != "", func(ctx context.Context, s *session, address string, _ []string) error {
			for _, e := range []struct {
				file string
				make func(context.Context, string) ([]byte, error)
			}{{*history, s.history}, {*script, s.script}, {*journal, func(ctx context.Context, address string) ([]byte, error) { return s.journal(ctx, address, *unmask) }}} {
				if e.file == "" {
					continue
				}
				limited, cancel := context.WithTimeout(ctx, s.timeout)
				data, err := e.make(limited, address)
				cancel()
				if err == nil {
					err = a.export(e.file, data)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})(cmd, args)
	}
	return cmd
}

// export writes a file that must not exist yet, whole or not at all.
func (a *app) export(file string, data []byte) error {
	if file == "-" {
		_, err := a.out.Write(data)
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usagef("%s exists: name another file, or remove it", file)
	}
	if err != nil {
		return usageError{err}
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	fmt.Fprintf(a.err, "%s: %d bytes\n", filepath.Clean(file), len(data))
	return nil
}

func (s *session) events(ctx context.Context, address string) ([]agent.Event, error) {
	tenant, _, _, _ := signals.SplitAddress(address)
	events, err := s.store.Events(ctx, store.Chain{Tenant: tenant, Address: address}, 1, 0)
	if err == nil && len(events) == 0 {
		err = agent.Errorf(agent.CodeNotFound, "there is no run %s in the store", address)
	}
	return events, err
}

func (s *session) history(ctx context.Context, address string) ([]byte, error) {
	tenant, _, _, _ := signals.SplitAddress(address)
	data, err := replaytests.Export(ctx, s.client, nil, store.Chain{Tenant: tenant, Address: address})
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return nil, agent.Errorf(agent.CodeNotFound, "Temporal has no run %s, or has forgotten it: %w", address, err)
	case err != nil:
		return nil, agent.Errorf(agent.CodeUnavailable, "%w", err)
	}
	return data, nil
}

func (s *session) script(ctx context.Context, address string) ([]byte, error) {
	events, err := s.events(ctx, address)
	if err != nil {
		return nil, err
	}
	return agenttest.Export(events)
}

func (s *session) journal(ctx context.Context, address string, unmask bool) ([]byte, error) {
	events, err := s.events(ctx, address)
	if err != nil {
		return nil, err
	}
	run, err := agent.Reduce(events)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	whole := struct {
		Run    *agent.Run    `json:"run"`
		Events []agent.Event `json:"events"`
	}{run, events}
	if !unmask {
		whole = agent.Redacted(run.Redaction(), whole)
	}
	err = writeJSON(&b, whole)
	return []byte(b.String()), err
}
