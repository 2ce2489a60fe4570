package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/signals"
)

func (a *app) runAmendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "amend ADDRESS FIELD=VALUE...", Short: "Sets fields of a run's state", Args: cobra.MinimumNArgs(1),
		Long: `Sets fields of a run's state: those that the agent lets anybody but its tools and
its start set. All of them or none. Open gates that show a changed field are void.

A VALUE that is JSON is that JSON (42, true, {"minor":1}), any other is a text.
For a field that holds a text, 42 is the text 42. null sets a field's zero value.`,
		Example: `  interlock run amend acme/refund/ticket-311 order_id=1043 --reason "typo"
  interlock run amend acme/refund/ticket-311 --fields '{"order_id":"1043"}'`,
	}
	reason := reasonFlag(cmd)
	object := cmd.Flags().String("fields", "", "all fields as one `JSON` object, instead of FIELD=VALUE")
	return a.sending(cmd, func(ctx context.Context, s *session, address string, rest []string, c *caller) (agent.Receipt, error) {
		fields, err := s.fieldsOf(ctx, address, *object, rest)
		if err != nil {
			return agent.Receipt{}, err
		}
		return s.starter.Amend(ctx, address, signals.Amend{ID: c.id, Principal: c.principal(), Fields: fields, Reason: *reason})
	})
}

// fieldsOf is the object that an amend sets.
func (s *session) fieldsOf(ctx context.Context, address, object string, assignments []string) (agent.JSON, error) {
	if (object == "") == (len(assignments) == 0) {
		return nil, usagef("name the fields, either as FIELD=VALUE or by --fields")
	}
	if object != "" {
		fields, err := agent.Canonical([]byte(object))
		if err == nil {
			err = agent.CheckAmend(fields)
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("--fields: %w", err)}
		}
		return fields, nil
	}
	texts := map[string]string{}
	for _, as := range assignments {
		name, text, ok := strings.Cut(as, "=")
		if !ok || name == "" {
			return nil, usagef("%q sets no field: write FIELD=VALUE", as)
		}
		if _, twice := texts[name]; twice {
			return nil, usagef("field %s is set twice", name)
		}
		texts[name] = text
	}
	run, err := s.starter.Get(ctx, address)
	if err != nil {
		return nil, err
	}
	_, present := members(run.State)
	fields := map[string]agent.JSON{}
	for name, text := range texts {
		fields[name] = valueOf(text, present[name])
	}
	return agent.Encode(fields)
}

// valueOf is a value as a person writes it into a shell, for a field that holds
// present: where that is a text, 1043 is one too.
func valueOf(text string, present agent.JSON) agent.JSON {
	v, err := agent.Canonical([]byte(text))
	if err == nil && (kindOf(present) != '"' || kindOf(v) == '"' || kindOf(v) == 'n') {
		return v
	}
	v, _ = agent.Encode(text) // a text always encodes
	return v
}

// kindOf is the first byte of a value, which tells its type.
func kindOf(v agent.JSON) byte { return v.String()[0] }
