// Command openapi writes api/openapi.json, the description of the HTTP API, from
// its Go types, and of it the Go client. A change that breaks a client is refused,
// unless REASON says why it must be.
package main

import (
	"fmt"
	"os"

	"interlock/api"
)

const contract, clientCode = "api/openapi.json", "api/client/client.gen.go"

func main() {
	err := write(contract, os.Getenv("REASON"))
	if err == nil {
		err = writeClient(".", contract, clientCode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func write(path, reason string) error {
	fresh, err := api.Document()
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(old) > 0 {
		broken, err := breaks(old, fresh)
		if err != nil {
			return err
		}
		for _, b := range broken {
			fmt.Fprintln(os.Stderr, "breaks clients:", b)
		}
		if len(broken) > 0 && reason == "" {
			return fmt.Errorf("%d changes break clients: keep what was, or say why not by REASON=… make openapi; nothing was written", len(broken))
		}
	}
	return os.WriteFile(path, fresh, 0o644)
}
