package tool

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"

	"interlock/agent"
)

// Caller says on whose behalf a tool's function runs. It comes from the run, not
// from the model's arguments: check here what the user may see.
type Caller struct {
	Tenant string
	User   string // the subject that the run serves
	Step   string
}

type callerKey struct{}

// CallerOf is the caller in a tool function's context.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

func withCaller(ctx context.Context, t agent.Task) context.Context {
	return context.WithValue(ctx, callerKey{}, Caller{Tenant: t.Tenant, User: t.User, Step: t.Step})
}

// call runs the tool's function. A panic in it is an error of this attempt,
// never the end of the worker.
func (t *Tool[S, A, R]) call(ctx context.Context, key Key, tx *sql.Tx, args A) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %s panicked: %v\n%s", t.spec.Name, p, firstLines(debug.Stack(), 2000))
		}
	}()
	return t.run(ctx, key, tx, args)
}

func firstLines(b []byte, n int) []byte {
	if len(b) > n {
		return b[:n]
	}
	return b
}

// result is what the run gets of R: itself, or what Keep makes of it while the
// whole goes to the blob store, or its size where it is too large.
func (t *Tool[S, A, R]) result(ctx context.Context, r R, limit int, p Ports) (Result, error) {
	whole, err := agent.Encode(r)
	if err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	if limit <= 0 || len(whole) <= limit {
		return Result{JSON: whole}, nil
	}
	if t.keep == nil {
		return Result{TooLarge: len(whole)}, nil
	}
	kept, err := t.kept(r)
	if err != nil {
		return Result{}, err
	}
	if len(kept) > limit {
		return Result{TooLarge: len(kept)}, nil
	}
	blob, err := p.Keep(ctx, whole)
	if err != nil {
		return Result{}, fmt.Errorf("result of %d bytes: %w", len(whole), err)
	}
	return Result{JSON: kept, Whole: &blob}, nil
}

func (t *Tool[S, A, R]) kept(r R) (j agent.JSON, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("keep of tool %s panicked: %v", t.spec.Name, p)
		}
	}()
	return agent.Encode(t.keep(r))
}
