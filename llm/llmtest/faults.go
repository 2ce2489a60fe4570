package llmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
)

// faults: each has its kind, after one request, and nothing of a broken answer
// is kept.
func faults(t *testing.T, d Driver) {
	for fault, want := range kinds {
		t.Run(string(fault), func(t *testing.T) {
			fake, model := start(t, d, Answer{Fault: fault, Response: llm.Response{Text: strings.Repeat("partial ", 50)}})
			got, err := model.Generate(t.Context(), hi)
			require.Error(t, err)
			require.Equal(t, want, llm.KindOf(err), "%v", err)
			require.Zero(t, got)
			require.Len(t, fake.Sent(), 1, "a driver retries nothing")
			requireText(t, fake, err)
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			require.Zero(t, e.RetryAfter, "none was announced")

			fake.Reply(Always(Answer{Response: llm.Response{Text: "hello"}}))
			got, err = model.Generate(t.Context(), hi)
			require.NoError(t, err, "a failed call leaves nothing behind")
			require.Equal(t, "hello", got.Text)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		model := d.New(t, "http://127.0.0.1:1", "key-of-nobody")
		_, err := model.Generate(t.Context(), hi)
		require.Equal(t, llm.KindUnavailable, llm.KindOf(err), "%v", err)
	})
}

// retryAfter: a delay that is announced is passed on, whole.
func retryAfter(t *testing.T, d Driver) {
	for _, fault := range []Fault{RateLimited, Unavailable, Overloaded} {
		for _, delay := range []time.Duration{time.Second, 13 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%s, %s", fault, delay), func(t *testing.T) {
				_, model := start(t, d, Answer{Fault: fault, RetryAfter: delay})
				_, err := model.Generate(t.Context(), hi)
				var e *llm.Error
				require.ErrorAs(t, err, &e)
				require.True(t, e.Kind.Temporary(), "%v", err)
				require.Equal(t, delay, e.RetryAfter)
			})
		}
	}
}

// cancels: a call ends with its context, and says so with the context's error.
func cancels(t *testing.T, d Driver) {
	t.Run("before", func(t *testing.T) {
		fake, model := start(t, d, Answer{Response: llm.Response{Text: "ok"}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := model.Generate(ctx, hi)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, llm.KindOf(err))
		require.Empty(t, fake.Sent())
	})
	for name, end := range map[string]struct {
		begin func(context.Context) (context.Context, context.CancelFunc)
		want  error
	}{
		"cancel": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		}, context.Canceled},
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*time.Millisecond)
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			_, model := start(t, d, Answer{Fault: Hang})
			ctx, cancel := end.begin(t.Context())
			defer cancel()
			began := time.Now()
			_, err := model.Generate(ctx, hi)
			require.ErrorIs(t, err, end.want)
			require.Empty(t, llm.KindOf(err), "the end of a context is no failure of the model")
			require.Less(t, time.Since(began), 3*time.Second)
		})
	}
}

// environment: what a machine happens to have set changes no request.
func environment(t *testing.T, d Driver) {
	fake, model := start(t, d, Answer{Response: llm.Response{Text: "ok"}})
	_, err := model.Generate(t.Context(), hi)
	require.NoError(t, err)
	for _, name := range d.Environment {
		t.Setenv(name, "leaked: value-of-the-environment\nX-Leaked: value-of-the-environment")
	}
	_, err = d.New(t, fake.URL(), fake.Key()).Generate(t.Context(), hi)
	require.NoError(t, err)
	sent := fake.Sent()
	require.Len(t, sent, 2)
	require.Equal(t, string(sent[0].Body), string(sent[1].Body))
	require.Equal(t, sent[0].Header, sent[1].Header)
}

// keyIsKept: no error, no text of a model shows the key, not even where the
// provider repeats it.
func keyIsKept(t *testing.T, d Driver) {
	fake := d.Fake(t)
	fake.Reply(Always(Answer{Response: llm.Response{Text: "ok"}}))
	const wrong = "wrong-key-4711-0815-4242"
	model := d.New(t, fake.URL(), wrong)
	_, err := model.Generate(t.Context(), hi)
	require.Equal(t, llm.KindUnauthorized, llm.KindOf(err), "%v", err)
	for err := err; err != nil; err = errors.Unwrap(err) {
		for _, verb := range []string{"%v", "%+v", "%#v", "%q", "%x"} {
			text := fmt.Sprintf(verb, err)
			require.NotContains(t, text, wrong)
			require.NotContains(t, text, fmt.Sprintf("%x", wrong))
		}
	}
	holder := struct{ m llm.Model }{model}
	for _, v := range []any{model, holder, &holder} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, v)
			require.NotContains(t, text, wrong, verb)
			require.NotContains(t, text, fmt.Sprintf("%x", wrong), verb)
		}
	}
}

// requireText: an error's text is a line that shows neither key nor request.
func requireText(t *testing.T, fake Fake, err error) {
	t.Helper()
	text := err.Error()
	require.NotContains(t, text, fake.Key())
	require.NotContains(t, text, "\n")
	require.Less(t, len(text), 1000)
	require.NotContains(t, text, "partial partial", "nothing of a broken answer")
}

// concurrent: calls at the same time do not mix.
func concurrent(t *testing.T, d Driver) {
	fake := d.Fake(t)
	fake.Reply(func(req llm.Request) Answer {
		said := req.Messages[0].Text
		return Answer{Response: llm.Response{Text: "answer to " + said, Calls: []agent.RawCall{raw("k1", "find_order", `{"order_id":"`+said+`"}`)}}}
	})
	model := d.New(t, fake.URL(), fake.Key())
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			said := fmt.Sprintf("message-%d", i)
			got, err := model.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User(said)}, Tools: []llm.Tool{find}})
			if err != nil || got.Text != "answer to "+said || len(got.Calls) != 1 || !strings.Contains(got.Calls[0].Args, `"`+said+`"`) {
				t.Errorf("%s was answered %+v, %v", said, got, err)
			}
		})
	}
	group.Wait()
	require.Len(t, fake.Sent(), 40)
}
