package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interlock/token"
)

// revokedLine is what was taken from a person.
type revokedLine struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject"`
	Role    string `json:"role,omitempty"` // none is all access
	Reason  string `json:"reason,omitempty"`
}

// revokedNow is what became of it.
type revokedNow struct {
	revokedLine
	File string `json:"file"`
	Done bool   `json:"done"` // false: it was so before
}

func (l revokedLine) what() string {
	if l.Role == "" {
		return "all access"
	}
	return "role " + inline(l.Role)
}

// whose are the flags that name a revocation.
func (a *app) whose(cmd *cobra.Command) *token.Revocation {
	r := &token.Revocation{}
	cmd.Flags().StringVar(&r.Subject, "subject", "", "the `person`, as tokens name them")
	cmd.Flags().StringVar(&r.Role, "role", "", "only this `role` (default: all access)")
	a.configured(cmd.Flags(), "tenant", "tokens.revoked")
	return r
}

// revocations is the file of revocations, and whose they are.
func (a *app) revocations(cmd *cobra.Command) (file, tenant string, err error) {
	cfg, err := a.settings(cmd, "")
	if err != nil {
		return "", "", err
	}
	if cfg.Tokens.Revoked == "" {
		return "", "", usagef("it is not known which file the workers read: name it by --tokens-revoked, INTERLOCK_TOKENS_REVOKED or tokens.revoked in the file of settings")
	}
	return cfg.Tokens.Revoked, cfg.Tenant, nil
}

// named completes a revocation, of which nothing is guessed but the tenant.
func (a *app) named(cmd *cobra.Command, r *token.Revocation) (file string, err error) {
	file, r.Tenant, err = a.revocations(cmd)
	switch {
	case err != nil:
		return "", err
	case r.Tenant == "":
		return "", usagef("say of which tenant: --tenant, or INTERLOCK_TENANT")
	case strings.TrimSpace(r.Subject) == "":
		return "", usagef("say from whom: --subject, as tokens name them")
	case cmd.Flags().Changed("role") && strings.TrimSpace(r.Role) == "":
		return "", usagef("--role names none: leave it out for all access")
	}
	return file, nil
}

func (a *app) keyRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke --tenant T --subject S [--role R]", Short: "Takes a role, or all access, from a person at once, whatever their tokens say", Args: cobra.NoArgs,
		Long: `Takes a role from a person, or all access where no --role is given. Their tokens
that say otherwise, signed before or after, are believed without it, by all workers
that read the same file (tokens.revoked), within 5 seconds. Who has no role left of
those that a token names is refused. What a person has decided before stands.`,
		Example: `  interlock key revoke --tenant acme --subject ann --role refunds --reason "moved to sales"
  interlock key revoke --tenant acme --subject ann --reason "has left"`,
	}
	output, r := outputFlag(cmd), a.whose(cmd)
	cmd.Flags().StringVar(&r.Reason, "reason", "", "`why`, for who reads the list")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, err := a.named(cmd, r)
		if err != nil {
			return err
		}
		added, err := token.Revoke(cmd.Context(), file, *r)
		if err != nil {
			return err
		}
		now := revokedNow{revokedLine(*r), file, added}
		return a.show(output, now, func(w io.Writer) error {
			text := "Revoked: %s of %s in %s; workers see it within 5 seconds\n"
			if !added {
				text = "Revoked before: %s of %s in %s\n"
			}
			_, err := fmt.Fprintf(w, text, now.what(), inline(now.Subject), now.Tenant)
			return err
		})
	}
	return cmd
}

func (a *app) keyRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restore --tenant T --subject S [--role R]", Short: "Takes back what key revoke has done", Args: cobra.NoArgs,
		Long: `Takes back a revocation: that of the --role, or that of all access where none is
given. Others of the same person stand. Workers see it within 5 seconds.`,
		Example: `  interlock key restore --tenant acme --subject ann --role refunds`,
	}
	output, r := outputFlag(cmd), a.whose(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, err := a.named(cmd, r)
		if err != nil {
			return err
		}
		if err := token.Restore(cmd.Context(), file, *r); err != nil {
			return err
		}
		now := revokedNow{revokedLine(*r), file, true}
		return a.show(output, now, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Restored: %s of %s in %s; workers see it within 5 seconds\n", now.what(), inline(now.Subject), now.Tenant)
			return err
		})
	}
	return cmd
}

func (a *app) keyRevokedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoked", Short: "Lists what was revoked", Args: cobra.NoArgs,
		Long: `Lists what was revoked, of the tenant that is configured or, without one, of all.`,
	}
	output := outputFlag(cmd)
	a.configured(cmd.Flags(), "tenant", "tokens.revoked")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file, tenant, err := a.revocations(cmd)
		if err != nil {
			return err
		}
		all, err := token.ReadRevocations(file)
		if err != nil {
			return err
		}
		lines := []revokedLine{}
		for _, r := range all {
			if tenant == "" || r.Tenant == tenant {
				lines = append(lines, revokedLine(r))
			}
		}
		return list(a, output, map[string]any{"revoked": lines}, lines, func(w io.Writer) error { return printRevoked(w, lines) })
	}
	return cmd
}

func printRevoked(w io.Writer, lines []revokedLine) error {
	p := &printer{w: w}
	if len(lines) == 0 {
		p.line("Nothing is revoked.")
		return p.err
	}
	rows := [][]string{{"TENANT", "SUBJECT", "REVOKED", "REASON"}}
	for _, l := range lines {
		rows = append(rows, []string{l.Tenant, inline(l.Subject), l.what(), inline(l.Reason)})
	}
	p.table(rows)
	return p.err
}
