package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/agent"
	"interlock/api/access"
)

func (a *app) accessCommand() *cobra.Command {
	cmd := group("access", "Makes, lists and revokes access tokens of the HTTP API", `Makes, lists and revokes access tokens of the HTTP API. The file of api.access holds
their hashes only: a token is shown once, when it is made. A running interlock serve
sees a change of the file within 5 seconds; a file that has become wrong lets nobody
in until it is mended.

  starter   a product backend: starts runs, and speaks for its users (as_user)
  user      a person whom runs serve: their own runs
  reviewer  reads the tenant's runs, and decides at the gates of --role
  operator  everything in the tenant`,
		a.accessNewCommand(), a.accessListCommand(), a.accessRevokeCommand())
	a.configured(cmd.PersistentFlags(), slices.Concat([]string{"api.access", "tenant"}, logKeys)...)
	return cmd
}

// accessFile is the file of access tokens.
func (a *app) accessFile(cmd *cobra.Command) (file, tenant string, err error) {
	cfg, err := a.settings(cmd, "warn")
	if err != nil {
		return "", "", err
	}
	if cfg.API.Access == "" {
		return "", "", usagef("no file of access tokens is named: give --api-access, or set INTERLOCK_API_ACCESS or the file's key api.access")
	}
	return cfg.API.Access, cfg.Tenant, nil
}

// editing lets one process at a time change the file.
func editing(file string, do func() error) error {
	unlock, err := lock(file + ".lock")
	if errors.Is(err, errLocked) {
		return agent.Errorf(agent.CodeUnavailable, "another interlock changes %s at this moment: try again", file)
	}
	if err != nil {
		return usageError{err}
	}
	return errors.Join(do(), unlock())
}

// accessLine is an access token in a list: all but the token.
type accessLine struct {
	ID      string        `json:"id"`
	Tenant  string        `json:"tenant"`
	Subject string        `json:"subject"`
	May     []access.Role `json:"may"`
	Roles   []string      `json:"roles,omitempty"`
	Expires *time.Time    `json:"expires,omitempty"`
}

func accessLineOf(e access.Entry) accessLine {
	return accessLine{e.ID, e.Tenant, e.Subject, e.May, e.Roles, e.Expires}
}

// newAccess is a token that has just been made.
type newAccess struct {
	accessLine
	Token string `json:"token"`
	File  string `json:"file"`
}

func (a *app) accessNewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new", Short: "Makes an access token, and prints it once", Args: cobra.NoArgs,
		Long: `Makes an access token, adds its hash to the file of api.access, and prints the token
on stdout: this once, and never again.`,
		Example: `  interlock access new --id ann --tenant acme --subject ann --may reviewer --role refunds --expires 720h
  interlock access new --id shop --tenant acme --subject shop --may starter`,
	}
	output := outputFlag(cmd)
	e, may := access.Entry{}, []string{}
	cmd.Flags().StringVar(&e.ID, "id", "", "`name` of the token in the file")
	cmd.Flags().StringVar(&e.Subject, "subject", "", "`who` it is (default: the id)")
	cmd.Flags().StringSliceVar(&may, "may", nil, "what they may do: starter, user, reviewer, operator; may be repeated")
	cmd.Flags().StringArrayVar(&e.Roles, "role", nil, "a gate's `role` that they have; may be repeated")
	expires := cmd.Flags().Duration("expires", 0, "after so long it is believed no more; 0s: never")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, tenant, err := a.accessFile(cmd)
		if err != nil {
			return err
		}
		if e.Tenant, e.Subject = tenant, strings.TrimSpace(e.Subject); e.Subject == "" {
			e.Subject = e.ID
		}
		for _, m := range may {
			e.May = append(e.May, access.Role(m))
		}
		if *expires < 0 {
			return usagef("--expires %s has passed already: give a duration such as 720h", *expires)
		}
		if *expires > 0 {
			at := time.Now().Add(*expires).UTC().Truncate(time.Second)
			e.Expires = &at
		}
		token, e := access.New(e)
		if err := e.Check(); err != nil {
			return usageError{err}
		}
		if err := editing(file, func() error { return access.Add(file, e) }); err != nil {
			return err
		}
		return a.show(output, newAccess{accessLineOf(e), token, file}, func(w io.Writer) error {
			fmt.Fprintf(a.err, "Token %s of %s is in %s, by its hash. This is the only time that it is shown:\n", e.ID, e.Subject, file)
			_, err := fmt.Fprintln(w, token)
			return err
		})
	}
	return cmd
}

func (a *app) accessListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "Lists the access tokens of the file", Args: cobra.NoArgs,
		Example: `  interlock access list --api-access /etc/interlock/access.yaml`,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, _, err := a.accessFile(cmd)
		if err != nil {
			return err
		}
		entries, err := access.Read(file)
		if err != nil {
			return err
		}
		lines := []accessLine{}
		for _, e := range entries {
			lines = append(lines, accessLineOf(e))
		}
		return list(a, output, map[string]any{"tokens": lines}, lines, func(w io.Writer) error { return printAccess(w, lines) })
	}
	return cmd
}

func printAccess(w io.Writer, lines []accessLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("There are no access tokens: nobody can use the API.")
		return p.err
	}
	rows := [][]string{{"ID", "TENANT", "SUBJECT", "MAY", "ROLES", "EXPIRES"}}
	for _, l := range lines {
		expires := "never"
		switch {
		case l.Expires != nil && time.Now().After(*l.Expires):
			expires = "has expired"
		case l.Expires != nil:
			expires = stamp(*l.Expires)
		}
		var may []string
		for _, r := range l.May {
			may = append(may, string(r))
		}
		rows = append(rows, []string{l.ID, l.Tenant, inline(l.Subject), strings.Join(may, " "), inline(strings.Join(l.Roles, " ")), expires})
	}
	p.table(rows)
	return p.err
}

func (a *app) accessRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Takes an access token out of the file", Args: cobra.ExactArgs(1),
		Long: `Takes an access token out of the file. Within 5 seconds it is believed no more, and
every session that was begun with it has ended.`,
		Example: `  interlock access revoke ann`,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, _, err := a.accessFile(cmd)
		if err != nil {
			return err
		}
		if err := editing(file, func() error { return access.Remove(file, args[0]) }); err != nil {
			return err
		}
		return a.show(output, map[string]string{"id": args[0], "file": file}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Token %s is revoked\n", args[0])
			return err
		})
	}
	return cmd
}
