package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"interlock/store"
	"interlock/worker"
)

func (a *app) storeCommand() *cobra.Command {
	return group("store", "What happens to the store itself", "What happens to the store itself: the SQLite file or the PostgreSQL database.", a.storeRestoredCommand())
}

// shownIdentity is what is told of a store that was restored.
type shownIdentity struct{ store.Identity }

func (a *app) storeRestoredCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "restored", Short: "Says that the store was brought back from an older copy", Args: cobra.NoArgs,
		Long: `Says that the store was brought back from an older copy: a backup, a snapshot of its
disk, or a standby that was behind. Run it after the copy is in place and before
workers and serve are started again.

A copy may lack what was acknowledged after it was made, also what tools had done. The
store's generation rises: an effect that was scheduled before and has no row any more
is in doubt (Once), asked for (Reconcilable) or run with the same key (Keyed), and is
never made again unnoticed. Saying it twice is harmless: more may be in doubt.`,
		Example: `  interlock store restored --reason "disk of 3 March, backup of 02:00"`,
	}
	output := outputFlag(cmd)
	reason := cmd.Flags().String("reason", "", "what happened; kept in the store")
	a.configured(cmd.Flags(), append(storeKeys, logKeys...)...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if strings.TrimSpace(*reason) == "" {
			return usagef("--reason is missing: say what happened, for whoever looks at doubts later")
		}
		cfg, err := a.settings(cmd, "warn")
		if err != nil {
			return err
		}
		st, err := worker.OpenStore(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		defer st.Close()
		id, err := st.Restored(cmd.Context(), *reason)
		if err != nil {
			return err
		}
		return a.show(output, id, shownIdentity{id}.print)
	}
	return cmd
}

func (i shownIdentity) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "The store has generation %d now (%s).\nStart workers and serve again; `interlock gate list` shows the steps that are in doubt.\n", i.Generation, i.Reason)
	return err
}
