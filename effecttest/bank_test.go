package effecttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/effecttest"
	"interlock/tool"
)

type state struct{}

type charge struct {
	Order int `json:"order"`
}

type charged struct {
	ID string `json:"id"`
}

// bank is the fake of another side, in which everything can be wrong.
type bank struct {
	net        effecttest.Network
	ignoresKey bool
	refuses    func(charge) bool

	mu      sync.Mutex
	ids     map[tool.Key]string
	charges map[tool.Key]int
	orders  map[int]int
}

func newBank() *bank {
	return &bank{ids: map[tool.Key]string{}, charges: map[tool.Key]int{}, orders: map[int]int{}}
}

var errDeclined = errors.New("card declined")

// apply is what the bank does when a request has reached it.
func (b *bank) apply(key tool.Key, c charge) (charged, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses != nil && b.refuses(c) {
		return charged{}, tool.Refused(errDeclined)
	}
	if id, stands := b.ids[key]; stands && !b.ignoresKey {
		return charged{id}, nil
	}
	b.ids[key] = "c-" + strconv.Itoa(len(b.ids)+1)
	b.charges[key]++
	b.orders[c.Order]++
	return charged{b.ids[key]}, nil
}

func (b *bank) find(key tool.Key) (charged, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.ids[key]
	return charged{id}, ok
}

// charge is the tool's function: it sends a request.
func (b *bank) charge(ctx context.Context, key tool.Key, c charge) (charged, error) {
	return effecttest.Send(ctx, &b.net, func(context.Context) (charged, error) { return b.apply(key, c) })
}

func (b *bank) lookUp(ctx context.Context, key tool.Key, _ charge) (charged, bool, error) {
	happened := false
	r, err := effecttest.Send(ctx, &b.net, func(context.Context) (r charged, _ error) {
		r, happened = b.find(key)
		return r, nil
	})
	return r, happened && err == nil, err
}

func commit(*state, charge, charged) error { return nil }

func (b *bank) keyed() *tool.Tool[state, charge, charged] {
	return tool.Keyed("charge", b.charge, commit)
}

func (b *bank) reconcilable() *tool.Tool[state, charge, charged] {
	return tool.Reconcilable("charge", b.charge, b.lookUp, commit)
}

// once sends no key: each request is another charge.
func (b *bank) once() *tool.Tool[state, charge, charged] {
	return tool.Once("charge", b.shot, commit)
}

func (b *bank) shot(ctx context.Context, c charge) (charged, error) {
	return effecttest.Send(ctx, &b.net, func(context.Context) (charged, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.orders[c.Order]++
		return charged{"c"}, nil
	})
}

// target counts by order, which no key can hide, but where equal orders are
// different effects.
func (b *bank) target(s effecttest.Subject) effecttest.Target {
	return effecttest.Target{Tool: s, Args: func(n int) any { return charge{n} }, Network: &b.net,
		Happened: func(_ context.Context, c effecttest.Call) (int, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if s.Repeatable {
				return b.charges[c.Key], nil
			}
			return b.orders[c.N], nil
		}}
}

// service is the bank over HTTP.
func (b *bank) service() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("POST /charges", func(w http.ResponseWriter, req *http.Request) {
		var c charge
		if err := json.NewDecoder(req.Body).Decode(&c); err != nil {
			answer(w, http.StatusBadRequest, err.Error())
			return
		}
		r, _ := b.apply(tool.Key(req.Header.Get("Idempotency-Key")), c)
		answer(w, http.StatusCreated, r)
	})
	mux.HandleFunc("GET /charges/{key}", func(w http.ResponseWriter, req *http.Request) {
		if r, ok := b.find(tool.Key(req.PathValue("key"))); ok {
			answer(w, http.StatusOK, r)
			return
		}
		answer(w, http.StatusNotFound, "no such charge")
	})
	return mux
}

// fails wants a violation of a kind, which its seed repeats.
func fails(t *testing.T, kind effecttest.Kind, target effecttest.Target, o effecttest.Options) *effecttest.Violation {
	t.Helper()
	var v *effecttest.Violation
	require.ErrorAs(t, effecttest.Check(t.Context(), target, o), &v)
	require.Equal(t, kind, v.Kind, "%v", v)
	require.NotEmpty(t, v.Trace)
	var again *effecttest.Violation
	o.Seed, o.Rounds = v.Seed, 1
	require.ErrorAs(t, effecttest.Check(t.Context(), target, o), &again)
	require.Equal(t, v.Kind, again.Kind)
	require.Equal(t, v.Faults, again.Faults)
	return v
}
