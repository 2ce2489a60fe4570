package api

import (
	"fmt"

	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// RunPath names a run in a path. The tenant is the caller's, and in no path.
type RunPath struct {
	Agent string `path:"agent" doc:"the agent's name" maxLength:"64"`
	Key   string `path:"key" doc:"the run's key" maxLength:"200"`
}

// address is the run's workflow id. A name that no run can have is one of a run
// that does not exist.
func (c *call) address(agentName, key string) (string, error) {
	if signals.CheckAddress(c.caller.Tenant, agentName, key) != nil {
		return "", access.NotFound()
	}
	return signals.Address(c.caller.Tenant, agentName, key), nil
}

func chainOf(tenant, address string) store.Chain {
	return store.Chain{Tenant: tenant, Address: address}
}

// Keyed is the header of every request that acts.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"the request's own id, of 1 to 200 printable ASCII characters, with or without quotes; a repeat under it takes effect once, and the same key with another body is refused as conflict"`
}

// Paged are the parameters of a list.
type Paged struct {
	Size  int    `query:"page_size" doc:"how many at most" minimum:"1" maximum:"200" default:"50"`
	Token string `query:"page_token" doc:"the next_page_token of the page before" maxLength:"2000"`
}

// cut is a page of what was read, one more than fits, and whether there is more.
func cut[T any](rows []T, size int) ([]T, bool) {
	if len(rows) > size {
		return rows[:size], true
	}
	return rows, false
}

func size(bytes int64) string {
	if bytes%1024 == 0 {
		return fmt.Sprintf("%d KiB", bytes/1024)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
