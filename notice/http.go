package notice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	mostRead = 64 << 10 // of an answer
	mostKept = 200      // of its text, in an error
	// MostAfter is how long a target can ask to be left alone.
	MostAfter = time.Hour
)

// webhook sends a signed webhook. Each secret signs: who receives it may know the
// old or the new one.
func (s *Sender) webhook(ctx context.Context, t Target, n Notice, link string) (string, error) {
	body, err := payload(n, link)
	if err != nil {
		return "", err
	}
	at := s.Now()
	var signatures []string
	for _, secret := range t.secrets {
		w, err := standardwebhooks.NewWebhook(string(secret))
		if err != nil {
			return "", errors.New("a secret of the target cannot be read")
		}
		signature, err := w.Sign(n.ID, at, body)
		if err != nil {
			return "", errors.New("the notice cannot be signed")
		}
		signatures = append(signatures, signature)
	}
	return s.post(ctx, t, body, http.Header{
		standardwebhooks.HeaderWebhookID:        {n.ID},
		standardwebhooks.HeaderWebhookTimestamp: {strconv.FormatInt(at.Unix(), 10)},
		standardwebhooks.HeaderWebhookSignature: {strings.Join(signatures, " ")},
	})
}

func (s *Sender) slack(ctx context.Context, t Target, n Notice, link string) (string, error) {
	body, err := slackBody(n, link)
	if err != nil {
		return "", err
	}
	return s.post(ctx, t, body, nil)
}

func (s *Sender) post(ctx context.Context, t Target, body []byte, header http.Header) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(t.url), bytes.NewReader(body))
	if err != nil {
		return "", errors.New("the target's URL is none")
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Interlock")
	client := s.guarded
	if t.AllowPrivate {
		client = s.open
	}
	resp, err := client.Do(req)
	if whole, ok := errors.AsType[*url.Error](err); ok {
		err = whole.Err // without the URL
		if whole.Timeout() {
			err = context.DeadlineExceeded
		}
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, mostRead)) // what can be read of it: the status counts
	return s.judge(t, resp, string(said))
}

// judge says what an answer means.
func (s *Sender) judge(t Target, resp *http.Response, said string) (string, error) {
	status := strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
	f := &Failure{Text: status}
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return status, nil
	case code >= 300 && code <= 399:
		f.Text += ": it redirects, which is not followed; name the place itself"
		return "", f
	case code == http.StatusGone:
		f.Gone = true
		f.Text += ": it wants no notices any more"
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), s.Now())
	}
	// What is secret goes before the rest is cut, or a part of it would stay.
	if said = plain(t.masked(said), mostKept); said != "" {
		f.Text += fmt.Sprintf(" (%s)", said)
	}
	return "", f
}

// retryAfter is how long a header asks for, in seconds or until a date.
func retryAfter(header string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if n, err := strconv.ParseInt(strings.TrimSpace(header), 10, 64); err == nil {
		wait = time.Duration(min(max(n, 0), int64(MostAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), MostAfter)
}
