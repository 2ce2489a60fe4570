package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"interlock/llm"
)

// maxRetryAfter is the longest delay that is believed. What is longer is taken
// for garbage, and the caller's own backoff holds.
const maxRetryAfter = 24 * time.Hour

// typed makes an error of what went wrong on the way. The request's address is
// left out, and so is whatever holds the request.
func (m *Model) typed(err error) error {
	var e *llm.Error
	if errors.As(err, &e) {
		return e
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || errors.Is(err, bufio.ErrTooLong) {
		return &llm.Error{Kind: llm.KindInvalidAnswer, Message: "the answer, or a line of it, is too large"}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	out := &llm.Error{Kind: llm.KindUnavailable, Message: "the connection failed", Err: err}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Message, out.Err = "no answer within "+m.timeout.String(), context.DeadlineExceeded
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		out.Message = "the connection was dropped"
	}
	if text := out.Err.Error(); m.redact(text) != text {
		out.Err = errors.New(m.redact(text))
	}
	return out
}

// failure is what an answer that is an error means. Status 200 stands for an
// error inside an answer that began well.
func (m *Model) failure(status int, header http.Header, body []byte) *llm.Error {
	said := readError(body)
	said.message = m.redact(said.message) // before it is cut: half a key is too much
	e := &llm.Error{Kind: said.kind(status), Message: said.describe(status, header)}
	if e.Kind.Temporary() {
		if e.RetryAfter = retryAfter(header, m.now()); e.RetryAfter > 0 {
			e.Message += ", try again in " + e.RetryAfter.String()
		}
	}
	return e
}

// apiError is what a server said, in any of the forms in use.
type apiError struct {
	message, class, code string
	page                 bool // HTML: a proxy answered
}

// members are the places where servers put what they say.
type members struct {
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Type    loose           `json:"type"`
	Status  loose           `json:"status"`
	Code    loose           `json:"code"`
}

func wrapError(raw json.RawMessage) []byte { return fmt.Appendf(nil, `{"error":%s}`, raw) }

func readError(body []byte) apiError {
	text := bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && len(list) > 0 { // Google's is a list of one
		text = list[0]
	}
	var m members
	if json.Unmarshal(text, &m) != nil {
		return apiError{message: string(text), page: bytes.HasPrefix(text, []byte("<"))}
	}
	if present(m.Error) {
		var inner members
		if json.Unmarshal(m.Error, &inner) != nil {
			inner = members{Message: m.Error, Type: m.Type, Code: m.Code}
		}
		m = inner
	}
	out := apiError{class: string(m.Type), code: string(m.Code)}
	if out.class == "" {
		out.class = string(m.Status)
	}
	for _, raw := range []json.RawMessage{m.Message, m.Detail} {
		var s loose
		if out.message == "" && present(raw) && s.UnmarshalJSON(raw) == nil {
			out.message = string(s)
		}
	}
	return out
}

// Codes and texts that say more than the status does.
var (
	tooLong = regexp.MustCompile(`(?i)` + strings.Join([]string{
		`context[ _]length[ _]exceeded`, `exceed_context_size`,
		`maximum context length`,                            // OpenAI, vLLM, DeepSeek, Mistral
		`maximum (model|prompt) length`,                     // vLLM, xAI
		`exceed(s|ed)? .{0,20}context (size|length|window)`, // llama.cpp, Ollama
		`context (size|length|window) (is |was )?exceeded`,
		`context length of only`, // LM Studio
		`prompt (is )?too long`, `input is too long`,
		`max_new_tokens.{0,3} must be <=`,  // TGI
		`input token count .{0,40}exceeds`, // Gemini
		`reduce the length of the (messages|prompt|input)`,
		`request too large for`, // more than a minute's tokens at once: later is no better
	}, "|"))
	noQuota = regexp.MustCompile(`(?i)^(insufficient_(user_)?(quota|balance)|billing_(hard_limit_reached|not_active))$`)
	policy  = regexp.MustCompile(`(?i)content_(policy|filter)|responsibleaipolicy|moderation|cyber_policy`)
	flagged = regexp.MustCompile(`(?i)content (management )?policy|flagged|moderation`)
	badKey  = regexp.MustCompile(`(?i)invalid_api_key|(incorrect|invalid) api key|api key not valid`)
)

// kind: what the server says decides first, then the status. No header, and
// none missing, keeps a call from being tried again.
func (e apiError) kind(status int) llm.Kind {
	names := e.code + " " + e.class
	switch {
	case tooLong.MatchString(names), tooLong.MatchString(e.message):
		return llm.KindContextTooLong
	case noQuota.MatchString(e.code), noQuota.MatchString(e.class):
		return llm.KindQuota
	case policy.MatchString(names), status == http.StatusForbidden && flagged.MatchString(e.message):
		return llm.KindRefused
	case status < 500 && (badKey.MatchString(names) || badKey.MatchString(e.message)):
		return llm.KindUnauthorized
	}
	if status < 400 {
		if n, err := strconv.Atoi(e.code); err == nil && n >= 400 && n < 600 {
			return statusKind(n, false)
		}
		return nameKind(names)
	}
	return statusKind(status, e.page)
}

func statusKind(status int, page bool) llm.Kind {
	switch status {
	case http.StatusTooManyRequests:
		return llm.KindRateLimited
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return llm.KindUnauthorized
	case http.StatusPaymentRequired:
		return llm.KindQuota
	case http.StatusRequestEntityTooLarge:
		return llm.KindContextTooLong
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return llm.KindUnavailable
	}
	if status >= 500 || page { // a proxy's page says nothing of the request
		return llm.KindUnavailable
	}
	return llm.KindRefused
}

// nameKind is for errors without a status. One that is not known is tried again:
// the server had taken the request.
func nameKind(names string) llm.Kind {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(strings.ToLower(names), p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("rate_limit", "resource_exhausted"):
		return llm.KindRateLimited
	case has("authentication", "permission", "unauthorized"):
		return llm.KindUnauthorized
	case has("invalid_request", "badrequest", "invalid_argument", "not_found", "unsupported"):
		return llm.KindRefused
	}
	return llm.KindUnavailable
}

// describe is a line for people.
func (e apiError) describe(status int, header http.Header) string {
	out := "an error in the answer"
	if status >= 400 {
		out = fmt.Sprintf("HTTP %d", status)
	}
	switch {
	case e.code != "" && e.code != strconv.Itoa(status):
		out += " " + line(e.code, 60)
	case e.class != "":
		out += " " + line(e.class, 60)
	}
	switch {
	case e.page:
		out += ": a page, not the provider's answer"
	case e.message != "":
		out += ": " + line(e.message, 300)
	}
	if id := header.Get("X-Request-Id"); id != "" {
		out += " (request " + line(id, 80) + ")"
	}
	return out
}

// line is at most n bytes of a text, without line ends.
func line(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// retryAfter is the delay that the server asks for, 0 where it asks for none
// that can be read. A date is taken against the server's own clock.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, form := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		v := strings.TrimSpace(h.Get(form.header))
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			if d := n * float64(form.unit); n > 0 && d <= float64(maxRetryAfter) {
				return time.Duration(math.Ceil(d))
			}
		}
	}
	at, err := http.ParseTime(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if d := at.Sub(now); d > 0 && d <= maxRetryAfter {
		return d
	}
	return 0
}
