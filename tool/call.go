package tool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"

	"interlock/agent"
)

// Caller says on whose behalf a tool's function runs. It comes from the run, not
// from the model's arguments: check here what the user may see.
type Caller struct {
	Tenant string
	User   string // the subject that the run serves
	Step   string
}

type (
	callerKey struct{}
	argsKey   struct{}
	openKey   struct{}
)

// CallerOf is the caller in a tool function's context.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// withTask gives a tool's functions the caller, and the bytes of its arguments.
func withTask(ctx context.Context, t agent.Task) context.Context {
	ctx = context.WithValue(ctx, callerKey{}, Caller{Tenant: t.Tenant, User: t.User, Step: t.Step})
	return context.WithValue(ctx, argsKey{}, t.Args)
}

// withEarlier tells a tool's function whether an earlier attempt may have had
// the effect.
func withEarlier(ctx context.Context, open bool) context.Context {
	return context.WithValue(ctx, openKey{}, open)
}

func earlier(ctx context.Context) bool {
	open, _ := ctx.Value(openKey{}).(bool)
	return open
}

// bytesOf is the canonical JSON of args: the very bytes that were validated and
// shown, unless the tool's function has made other arguments of them.
func bytesOf[A any](ctx context.Context, args A) (agent.JSON, error) {
	if validated, ok := ctx.Value(argsKey{}).(agent.JSON); ok {
		if same, err := decode[A](validated); err == nil && reflect.DeepEqual(same, args) {
			return validated, nil
		}
	}
	return agent.Encode(args)
}

// call runs the tool's function.
func (t *Tool[S, A, R]) call(ctx context.Context, key Key, tx *sql.Tx, args A) (r R, err error) {
	defer caught("tool "+t.spec.Name, &err)
	return t.run(ctx, key, tx, args)
}

// Panicked is the error of a tool's code that panicked. Its text tells neither what it
// panicked with nor where: that is for the worker's log.
type Panicked struct {
	What  string // the tool, or its keep
	Value any
	Stack []byte
}

func (p *Panicked) Error() string { return p.What + " panicked; the worker's log says where" }

// caught makes a panic in a tool's code an error of this attempt: never the end of the
// worker.
func caught(what string, err *error) {
	if p := recover(); p != nil {
		*err = &Panicked{What: what, Value: p, Stack: debug.Stack()}
	}
}

// result is what the run gets of R: itself, or what Keep makes of it while the
// whole goes to the blob store, or why neither can be kept. Its error is the
// blob store's.
func (t *Tool[S, A, R]) result(ctx context.Context, r R, limit int, p Ports) (Result, error) {
	whole, err := agent.Encode(r)
	if err != nil {
		return Result{Unkept: "the result is no JSON that is accepted: " + text(err.Error())}, nil
	}
	if limit <= 0 || len(whole) <= limit {
		return Result{JSON: whole}, nil
	}
	tooLarge := func(bytes int, what string) (Result, error) {
		return Result{Unkept: fmt.Sprintf("result_too_large: %d bytes, the limit is %d; %s", bytes, limit, what)}, nil
	}
	if t.keep == nil {
		return tooLarge(len(whole), "the tool must name Keep")
	}
	kept, err := t.kept(r)
	if err != nil {
		if panicked := (*Panicked)(nil); errors.As(err, &panicked) && p.Panicked != nil {
			p.Panicked(panicked)
		}
		return Result{Unkept: text(err.Error())}, nil
	}
	if len(kept) > limit {
		return tooLarge(len(kept), "Keep must keep less")
	}
	blob, err := p.Keep(ctx, whole)
	if err != nil {
		return Result{}, fmt.Errorf("result of %d bytes: %w", len(whole), err)
	}
	return Result{JSON: kept, Whole: &blob}, nil
}

// text is what every store takes of an error's text.
func text(s string) string {
	if len(s) > 1000 {
		s = s[:1000]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}

func (t *Tool[S, A, R]) kept(r R) (j agent.JSON, err error) {
	defer caught("keep of tool "+t.spec.Name, &err)
	return agent.Encode(t.keep(r))
}
