package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"interlock/agent"
)

// caller is who sends something to a run, and under which id.
type caller struct {
	as    string
	roles []string
	id    string
}

// callerFlags are the flags of every command that sends something.
func callerFlags(cmd *cobra.Command) *caller {
	c := &caller{}
	cmd.Flags().StringVar(&c.as, "as", "", "`subject` of the principal, recorded as unverified (default: who runs this command)")
	cmd.Flags().StringArrayVar(&c.roles, "role", nil, "a `role` that the principal claims; may be repeated")
	cmd.Flags().StringVar(&c.id, "id", "", "`id` that makes a repeat harmless (default: a new one, told where no answer comes)")
	return c
}

// ready fills in what was not given.
func (c *caller) ready() error {
	for _, r := range append([]string{c.as, c.id}, c.roles...) {
		if r != strings.TrimSpace(r) || len(r) > 200 || inline(r) != r {
			return usagef("%q is no subject, role or id: up to 200 bytes, without control and invisible characters and without spaces around it", inline(r))
		}
	}
	if c.as == "" {
		who, err := user.Current()
		if err != nil || who.Username == "" {
			return usagef("it is not known who runs this command: give --as SUBJECT")
		}
		c.as = who.Username
	}
	if c.id == "" {
		c.id = strings.ToLower(rand.Text())
	}
	return nil
}

// unanswered adds the id to an error after which nobody knows whether what was
// sent has arrived: with it the command can be repeated safely.
func (c *caller) unanswered(err error) error {
	switch agent.ErrorCode(err) {
	case agent.CodeUnavailable, agent.CodeInternal:
		if _, usage := errors.AsType[usageError](err); err != nil && !usage {
			return agent.Errorf(agent.ErrorCode(err), "%w (to send it again, give --id %s)", err, c.id)
		}
	}
	return err
}

func (c *caller) principal() agent.Principal {
	return agent.Principal{Subject: c.as, Roles: c.roles}
}

// bodyOf is what --body names: JSON, @FILE, or - for stdin.
func (a *app) bodyOf(given string) (agent.JSON, error) {
	data := []byte(given)
	var err error
	switch {
	case given == "":
		return nil, nil
	case given == "-":
		data, err = io.ReadAll(io.LimitReader(a.in, maxBody))
	case strings.HasPrefix(given, "@"):
		data, err = os.ReadFile(given[1:])
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--body: %w", err)}
	}
	body, err := agent.Canonical(data)
	if err != nil {
		return nil, usageError{fmt.Errorf("--body is no JSON that is accepted: %w", err)}
	}
	return body, nil
}

// maxBody bounds what is read from stdin; a run takes far less.
const maxBody = 1 << 20
