package effecttest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"interlock/effecttest"
	"interlock/tool"
)

type Charge struct {
	Order int `json:"order"`
}

type Charged struct {
	ID string `json:"id"`
}

type State struct {
	ChargeID string `json:"charge_id" set:"tool"`
}

// Payments is a fake of a payment service. It should dedupe on the key.
type Payments struct {
	network effecttest.Network
	dedupes bool

	mu      sync.Mutex
	charged map[tool.Key]int
}

func (p *Payments) Charge(ctx context.Context, key tool.Key, _ Charge) (Charged, error) {
	return effecttest.Send(ctx, &p.network, func(context.Context) (Charged, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.charged[key] == 0 || !p.dedupes {
			p.charged[key]++
		}
		return Charged{ID: "ch-" + string(key)[:8]}, nil
	})
}

// A tool that is Keyed on a service which ignores the key charges twice, when an
// answer is lost. In a test it is effecttest.Run(t, target, options).
func Example() {
	for _, dedupes := range []bool{true, false} {
		pay := &Payments{charged: map[tool.Key]int{}, dedupes: dedupes}
		target := effecttest.Target{
			Tool: effecttest.Tool(tool.Keyed("charge", pay.Charge, func(s *State, _ Charge, c Charged) error { s.ChargeID = c.ID; return nil })),
			Args: func(n int) any { return Charge{Order: n} },
			Happened: func(_ context.Context, c effecttest.Call) (int, error) {
				pay.mu.Lock()
				defer pay.mu.Unlock()
				return pay.charged[c.Key], nil
			},
			Network: &pay.network,
		}
		err := effecttest.Check(context.Background(), target, effecttest.Options{})
		if v := (*effecttest.Violation)(nil); errors.As(err, &v) {
			fmt.Println("dedupes:", dedupes, "->", v.Kind+":", v.Reason)
			continue
		}
		fmt.Println("dedupes:", dedupes, "->", err)
	}
	// Output:
	// dedupes: true -> <nil>
	// dedupes: false -> repeated: the effect is in place 2 times
}
