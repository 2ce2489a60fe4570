package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"interlock/token"
)

// pair are the files of a new pair of keys.
type pair struct {
	ID      string `json:"id"`
	Private string `json:"private"` // for who signs
	Public  string `json:"public"`  // for workers
}

func (a *app) keyCommand() *cobra.Command {
	return group("key", "Makes keys that verdicts are signed with, and takes roles from people", `Makes keys that verdicts and messages are signed with, so that a run knows who has
sent them. Who has authenticated a person signs (tokens.sign_with); workers
believe what is signed with a key of the folder tokens.keys, or of the JSON Web Key
Set that tokens.jwks names; but for the roles that were taken from a person since,
which the file tokens.revoked lists.`, a.keyNewCommand(), a.keyRevokeCommand(), a.keyRestoreCommand(), a.keyRevokedCommand())
}

func (a *app) keyNewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new ID", Short: "Makes a pair of keys: ID.key.pem to sign with, ID.pem to check with", Args: cobra.ExactArgs(1),
		Long: `Makes a pair of Ed25519 keys. ID.key.pem is for who signs, and can be read by its
owner only; ID.pem belongs into the folder of public keys of the workers, which see
it at once. To rotate: make a new pair, give the public key to all workers, then sign
with the new private key, and take the old public key away a quarter of an hour later.`,
		Example: `  interlock key new api-2026-11 --in /etc/interlock/sign --public-in /etc/interlock/keys`,
	}
	output := outputFlag(cmd)
	in := cmd.Flags().String("in", ".", "`folder` of the private key")
	public := cmd.Flags().String("public-in", "", "`folder` of the public key (default: that of the private one)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if *public == "" {
			*public = *in
		}
		for _, folder := range []string{*in, *public} {
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return usagef("%s is no folder: make it first", folder)
			}
		}
		p := pair{args[0], filepath.Join(*in, args[0]+".key.pem"), filepath.Join(*public, args[0]+".pem")}
		if err := token.Generate(*in, *public, args[0]); err != nil {
			return err
		}
		return a.show(output, p, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "To sign with: %s\nTo check with: %s\n", p.Private, p.Public)
			return err
		})
	}
	return cmd
}
