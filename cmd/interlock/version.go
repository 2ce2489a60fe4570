package main

import (
	"encoding/json"
	"fmt"
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
	output := a.outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := currentVersions()
		if output.value == "json" {
			return writeJSON(a.out, v)
		}
		_, err := fmt.Fprintf(a.out, "interlock %s\n%s\ngo.temporal.io/sdk %s\n", v.Version, v.Go, v.SDK)
		return err
	}
	return cmd
}

func writeJSON(to interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
