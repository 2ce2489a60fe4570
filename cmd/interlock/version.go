package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versions struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	SDK     string `json:"temporal_sdk"`
}

func currentVersions() versions {
	v := versions{Version: version, Go: runtime.Version(), SDK: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "go.temporal.io/sdk" {
				if m.Replace != nil {
					m = m.Replace
				}
				v.SDK = m.Version
			}
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Prints the version of this build, of Go and of Temporal's SDK", Args: cobra.NoArgs}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := currentVersions()
		return a.show(output, v, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "interlock %s\n%s\ngo.temporal.io/sdk %s\n", v.Version, v.Go, v.SDK)
			return err
		})
	}
	return cmd
}
