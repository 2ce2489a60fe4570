package orders_test

import (
	"testing"

	"example.com/orders"
	"interlock/replaytests"
)

//go:generate go run ./record

// What runs did before a change, they still do after it. testdata/histories holds
// recorded runs; `interlock run export --history` adds one of yours.
func TestReplay(t *testing.T) {
	replaytests.Run(t, "testdata/histories", orders.Agent(noShop{}), orders.AgentV2(noShop{}))
}
