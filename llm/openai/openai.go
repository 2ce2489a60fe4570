// Package openai drives the Chat Completions API of OpenAI and of every server
// that speaks it, with OpenAI's SDK.
//
// The SDK builds and sends the request. It retries nothing and reads no
// environment: what is sent, where and under which key is in [Options] alone
// (HTTP proxies are the exception, as with any Go client). Answers are read
// here, since servers that call themselves compatible differ most in those.
package openai

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"interlock/llm"
)

const (
	maxAnswer = 64 << 20 // bytes; a stream needs some 200 for a token
	maxError  = 1 << 20  // bytes of the answer to a failed call
)

// Model is one model of one server. It implements [llm.Model].
//
// It holds the key in its SDK options only, which are functions: printing it, or
// whatever holds it, does not show the key.
type Model struct {
	name    string
	address string // for people
	timeout time.Duration
	stream  bool
	now     func() time.Time
	redact  func(string) string
	build   builder
	chat    sdk.ChatCompletionService
}

var _ llm.Model = (*Model)(nil)

// New makes a model. It makes no call.
func New(o Options) (*Model, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	request := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(o.HTTPClient),
		option.WithMaxRetries(0), // who retries, and when, is decided above
		option.WithMiddleware(limitBody),
	}
	if o.APIKey != "" {
		request = append(request, option.WithAPIKey(o.APIKey))
	}
	if o.Organization != "" {
		request = append(request, option.WithOrganization(o.Organization))
	}
	if o.Project != "" {
		request = append(request, option.WithProject(o.Project))
	}
	for name, value := range o.Headers {
		request = append(request, option.WithHeader(name, value))
	}
	return &Model{name: o.Name, address: o.BaseURL, timeout: o.Timeout, stream: o.Stream, now: time.Now, redact: redactor(o), build: o.builder(),
		// Unlike a client, a service of the SDK reads no environment.
		chat: sdk.NewChatCompletionService(request...)}, nil
}

// limitBody bounds what is read of an answer: the SDK reads the whole body of a
// failed call.
func limitBody(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return res, err
	}
	limit := int64(maxAnswer)
	if res.StatusCode >= 400 {
		limit = maxError
	}
	res.Body = http.MaxBytesReader(nil, res.Body, limit)
	return res, nil
}

// Name implements [llm.Model].
func (m *Model) Name() string { return m.name }

// Generate implements [llm.Model]. It sends one request, whatever comes of it.
func (m *Model) Generate(ctx context.Context, req llm.Request) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	params, err := m.build.params(req)
	if err != nil {
		return llm.Response{}, &llm.Error{Kind: llm.KindRefused, Message: "not sent: " + err.Error()}
	}
	bounded, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	resp, err := m.call(bounded, params, req.Delta)
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return llm.Response{}, ctx.Err()
	}
	return llm.Response{}, m.typed(err)
}

// call returns an [*llm.Error], or what went wrong on the way.
func (m *Model) call(ctx context.Context, params sdk.ChatCompletionNewParams, delta func(string)) (llm.Response, error) {
	var raw *http.Response
	options := []option.RequestOption{option.WithResponseBodyInto(&raw)}
	if m.stream {
		options = append(options, option.WithJSONSet("stream", true))
	}
	_, err := m.chat.New(ctx, params, options...)
	if raw == nil {
		if err == nil {
			err = errors.New("the SDK gave no response")
		}
		return llm.Response{}, err
	}
	defer raw.Body.Close()
	if raw.StatusCode >= 400 {
		// The SDK's own error is not used: it has no status where the body is no
		// JSON, and it holds the request with its key.
		body, _ := io.ReadAll(raw.Body) // in memory by now, as far as it came
		return llm.Response{}, m.failure(raw.StatusCode, raw.Header, body)
	}
	if err != nil {
		return llm.Response{}, err
	}
	out, err := m.read(raw, delta)
	if out.Model == "" {
		out.Model = m.name
	}
	return out, err
}

// read reads what came, whole or as a stream: some servers ignore what they were
// asked for, and a failed call is never answered with a stream.
func (m *Model) read(raw *http.Response, delta func(string)) (llm.Response, error) {
	if media, _, _ := mime.ParseMediaType(raw.Header.Get("Content-Type")); media == "text/event-stream" {
		return m.readStream(raw, delta)
	}
	body, err := io.ReadAll(raw.Body)
	if err != nil {
		return llm.Response{}, err
	}
	return m.readWhole(raw, body)
}
