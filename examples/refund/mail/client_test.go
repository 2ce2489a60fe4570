package mail_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/examples/refund/mail"
)

var receipt = mail.Receipt{
	RefundID: "r-1042", OrderID: "1042", CustomerID: "c-017",
	Amount: agent.Money{Minor: 8990, Currency: "EUR"},
}

// kindOf is what err says is known, and the status that it came with.
func kindOf(t *testing.T, err error) (mail.Kind, int) {
	t.Helper()
	var e *mail.Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Error())
	return e.Kind, e.Status
}

func requireKind(t *testing.T, want mail.Kind, err error) {
	t.Helper()
	got, _ := kindOf(t, err)
	require.Equal(t, want, got, "%v", err)
}

func TestReceiptInWords(t *testing.T) {
	m := receipt.Message()
	require.Equal(t, "c-017@customers.example", m.To)
	require.Equal(t, "Your refund for order 1042", m.Subject)
	require.Contains(t, m.Text, "89.90 EUR")
	require.Contains(t, m.Text, "r-1042")
	require.Equal(t, m, receipt.Message())
}

func TestSameKeyIsTheSameMail(t *testing.T) {
	s, c := serve(t)
	first, err := c.SendReceipt(t.Context(), "k-1", receipt)
	require.NoError(t, err)
	again, err := c.SendReceipt(t.Context(), "k-1", receipt)
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := c.SendReceipt(t.Context(), "k-2", receipt)
	require.NoError(t, err)
	require.NotEqual(t, first, other, "another key is another mail")
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, receipt.Message(), list[0].Message)
	require.Equal(t, "k-1", list[0].Key)
}

func TestRefusedForGood(t *testing.T) {
	s, c := serve(t)
	long := mail.Message{To: "a@b.example", Subject: "s", Text: strings.Repeat("x", 64<<10)}
	for name, send := range map[string]func() error{
		"no key":      func() error { _, err := c.SendReceipt(t.Context(), "", receipt); return err },
		"key in two":  func() error { _, err := c.SendReceipt(t.Context(), "a\r\nb: c", receipt); return err },
		"long key":    func() error { _, err := c.SendReceipt(t.Context(), strings.Repeat("k", 201), receipt); return err },
		"no receiver": func() error { _, err := c.SendReceipt(t.Context(), "k", mail.Receipt{OrderID: "1"}); return err },
		"too long":    func() error { _, err := c.Send(t.Context(), "k", long); return err },
	} {
		t.Run(name, func(t *testing.T) { requireKind(t, mail.Refused, send()) })
	}
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// What stands under the key went out with other words: to call that refused
// would invite a second mail.
func TestAnotherTextUnderAKeyIsNotARefusal(t *testing.T) {
	_, c := serve(t)
	_, err := c.SendReceipt(t.Context(), "k", receipt)
	require.NoError(t, err)
	changed := receipt
	changed.RefundID = "r-1"
	_, err = c.SendReceipt(t.Context(), "k", changed)
	kind, status := kindOf(t, err)
	require.Equal(t, mail.Unknown, kind)
	require.Equal(t, http.StatusConflict, status)
}

func TestNotSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := "http://" + ln.Addr().String()
	require.NoError(t, ln.Close())
	_, err = mail.Client{BaseURL: nobody}.SendReceipt(t.Context(), "k", receipt)
	requireKind(t, mail.NotSent, err)

	for _, url := range []string{"", "127.0.0.1:8025", "ftp://mail.example", "http://", "::"} {
		_, err = mail.Client{BaseURL: url}.SendReceipt(t.Context(), "k", receipt)
		requireKind(t, mail.NotSent, err)
	}

	s, c := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.SendReceipt(ctx, "k", receipt)
	requireKind(t, mail.NotSent, err)
	require.ErrorIs(t, err, context.Canceled)
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestUnknownWhenTheAnswerIsLate(t *testing.T) {
	s, c := serve(t)
	s.Delay(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := c.SendReceipt(ctx, "k", receipt)
	requireKind(t, mail.Unknown, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	s.Delay(0)
	requireOneMail(t, s, c)
}

func TestUnknownWhenTheConnectionIsLost(t *testing.T) {
	s, c := serve(t)
	// A connection that was used before must make no difference: the transport
	// would repeat the request on its own, and hide that it was lost.
	_, err := c.Send(t.Context(), "warm", receipt.Message())
	require.NoError(t, err)
	s.DropNext(2)
	for range 2 {
		_, err := c.SendReceipt(t.Context(), "k", receipt)
		requireKind(t, mail.Unknown, err)
	}
	requireOneMail(t, s, c)
}

// requireOneMail sends once more under the key "k", and finds what was lost.
func requireOneMail(t *testing.T, s *mail.Server, c mail.Client) {
	t.Helper()
	sent, err := c.SendReceipt(t.Context(), "k", receipt)
	require.NoError(t, err)
	list, err := s.Messages(t.Context())
	require.NoError(t, err)
	var ids []string
	for _, m := range list {
		if m.Key == "k" {
			ids = append(ids, m.ID)
		}
	}
	require.Equal(t, []string{sent.ID}, ids)
}

func TestAnswersOfOtherServices(t *testing.T) {
	var followed atomic.Bool
	answers := map[string]struct {
		status int
		body   string
		want   mail.Kind
	}{
		"/redirect":    {http.StatusTemporaryRedirect, "", mail.Unknown},
		"/unavailable": {http.StatusServiceUnavailable, `{"error":"later"}`, mail.Unknown},
		"/broken":      {http.StatusInternalServerError, "<html>", mail.Unknown},
		"/timeout":     {http.StatusRequestTimeout, "", mail.Unknown},
		"/busy":        {http.StatusTooManyRequests, "", mail.NotSent},
		"/forbidden":   {http.StatusForbidden, `{"error":"no"}`, mail.Refused},
		"/noid":        {http.StatusCreated, `{}`, mail.Unknown},
		"/nojson":      {http.StatusOK, `hello`, mail.Unknown},
		"/endless":     {http.StatusOK, `{"id":"m-1","x":"` + strings.Repeat("x", 1<<20) + `"}`, mail.Unknown},
		"/accepted":    {http.StatusAccepted, `{"id":"m-1"}`, mail.Unknown},
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/followed" {
			followed.Store(true)
		}
		w.Header().Set("Location", "/followed")
		a := answers[strings.TrimSuffix(r.URL.Path, "/messages")]
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	defer other.Close()
	for path, a := range answers {
		t.Run(path[1:], func(t *testing.T) {
			_, err := mail.Client{BaseURL: other.URL + path, HTTP: other.Client()}.SendReceipt(t.Context(), "k", receipt)
			kind, status := kindOf(t, err)
			require.Equal(t, a.want, kind)
			require.Equal(t, a.status, status)
			require.Less(t, len(err.Error()), 500)
		})
	}
	require.False(t, followed.Load())
	require.Nil(t, other.Client().CheckRedirect, "the caller's client stays as it is")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestATransportWithoutTraceProvesNothing(t *testing.T) {
	h := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("down") })}
	_, err := mail.Client{BaseURL: "http://mail.example", HTTP: h}.SendReceipt(t.Context(), "k", receipt)
	requireKind(t, mail.Unknown, err)
}
