package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// request is one call, however often it is sent.
type request struct {
	method, path string
	query        url.Values
	body         any    // of a POST
	key          string // of a POST
	header       http.Header
}

// pathOf puts names into a path, each as one segment whatever it holds.
func pathOf(format string, names ...string) string {
	escaped := make([]any, len(names))
	for i, n := range names {
		escaped[i] = url.PathEscape(n)
	}
	return fmt.Sprintf(format, escaped...)
}

// param is one of a query; a zero one that need not be there is not sent.
type param struct {
	name   string
	value  any
	needed bool
}

func queryOf(params ...param) url.Values {
	q := url.Values{}
	for _, p := range params {
		if p.needed || !reflect.ValueOf(p.value).IsZero() {
			q.Set(p.name, fmt.Sprint(p.value))
		}
	}
	return q
}

// call asks until there is an answer, and decodes it.
func call[T any](ctx context.Context, c *Client, r request, options ...CallOption) (*T, error) {
	for _, o := range options {
		o(&r)
	}
	var body []byte
	if r.method == http.MethodPost {
		if r.key == "" {
			r.key = rand.Text()
		}
		var err error
		if body, err = encoded(r.body); err != nil {
			return nil, fmt.Errorf("client: %s %s: the body is no JSON: %w", r.method, r.path, err)
		}
	}
	data, err := c.answered(ctx, r, body)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("client: %s %s answered what is none of it: %w", r.method, r.path, err)
	}
	return out, nil
}

// encoded keeps every character of raw values as it is.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// answered sends a request until it is answered with success, or with what sending
// it again does not change.
func (c *Client) answered(ctx context.Context, r request, body []byte) ([]byte, error) {
	began := time.Now()
	for tries := 0; ; tries++ {
		data, err := c.once(ctx, r, body)
		if err == nil {
			return data, nil
		}
		pause, again := c.pause.after(err, tries)
		if again && ctx.Err() == nil && time.Since(began)+pause <= c.patience && sleep(ctx, pause) {
			continue
		}
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // that it was given up, and over what
		}
		return nil, err
	}
}

// once is one attempt, whose answer is read whole.
func (c *Client) once(ctx context.Context, r request, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.answer)
	defer cancel()
	res, err := c.send(ctx, c.http, r, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, broken(r, err)
	}
	return data, nil
}

// send asks once; an answer that is no success is an error.
func (c *Client) send(ctx context.Context, h *http.Client, r request, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.urlOf(r), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, broken(r, fmt.Errorf("there is no access token to ask with: %w", err))
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", quoted(r.key))
	}
	res, err := h.Do(req)
	if err != nil {
		return nil, broken(r, err)
	}
	if res.StatusCode/100 != 2 {
		defer func() { _ = res.Body.Close() }()
		return nil, errorOf(res)
	}
	return res, nil
}

// urlOf keeps the path that the base may have, and the escapes of the request's.
func (c *Client) urlOf(r request) string {
	u := *c.base
	u.RawQuery = r.query.Encode()
	path, _ := url.PathUnescape(r.path) // it was escaped here
	before := strings.TrimSuffix(u.EscapedPath(), "/")
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+path, before+r.path
	return u.String()
}

// quoted is a key as a structured field's string, which keeps every character.
func quoted(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
