// Command worker serves the agent, in both versions that runs are pinned to.
// Settings are flags, INTERLOCK_* variables or a file; --help lists them.
package main

import (
	"context"
	"os"

	"example.com/orders"
	"example.com/orders/memory"
	"interlock/worker"
)

func main() {
	shop := &memory.Shop{}
	os.Exit(worker.Main(context.Background(), orders.Agent(shop), orders.AgentV2(shop)))
}
