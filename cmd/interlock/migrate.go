package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"interlock/worker"
)

// migrated is a store's schema before and after.
type migrated struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	Newest int64 `json:"newest"` // that this program knows
}

func (a *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Brings the store's schema up to date, or makes a new store", Args: cobra.NoArgs,
		Long: `Brings the schema of the store up to date: the SQLite file of store.path, which is
made where there is none, or the PostgreSQL database of store.dsn. Workers never
migrate: run this before a release that needs it. Doing it twice, or from several
machines at once, is harmless.

--status changes nothing and tells the versions.`,
		Example: `  interlock migrate
  INTERLOCK_STORE_DSN_FILE=/run/secrets/store interlock migrate --status -o json`,
	}
	output := outputFlag(cmd)
	status := cmd.Flags().Bool("status", false, "only tell the versions")
	a.configured(cmd.Flags(), append(storeKeys, logKeys...)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := a.settings(cmd, "warn")
		if err != nil {
			return err
		}
		var m migrated
		if m.Before, m.Newest, err = worker.SchemaVersion(cmd.Context(), cfg); err != nil {
			return err
		}
		m.After = m.Before
		if !*status {
			if m.Before, m.After, err = worker.Migrate(cmd.Context(), cfg); err != nil {
				return err
			}
		}
		return a.show(output, m, m.print)
	}
	return cmd
}

func (m migrated) print(w io.Writer) (err error) {
	switch {
	case m.After != m.Newest && m.After == 0:
		_, err = fmt.Fprintf(w, "There is no store yet; `interlock migrate` makes one.\n")
	case m.After != m.Newest:
		_, err = fmt.Fprintf(w, "The schema has version %d, this program needs %d: run `interlock migrate`.\n", m.After, m.Newest)
	case m.Before == m.After:
		_, err = fmt.Fprintf(w, "The schema is up to date: version %d.\n", m.After)
	default:
		_, err = fmt.Fprintf(w, "The schema was brought from version %d to %d.\n", m.Before, m.After)
	}
	return err
}
