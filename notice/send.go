package notice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// Timeout is how long one attempt may take.
const Timeout = 15 * time.Second

// Options change how notices are sent. The zero value is right for production.
type Options struct {
	// Page is the base URL of the pages that notices link to; "": they link nowhere.
	Page     string
	Timeout  time.Duration // [Timeout] where 0
	Now      func() time.Time
	Resolver *net.Resolver
	Roots    *x509.CertPool // the system's where nil
}

// Sender sends notices, one attempt at a time. It connects to public addresses
// only, but for targets that allow others; follows no redirect; asks no proxy; and
// reads 64 KiB of an answer at most.
type Sender struct {
	Options
	guarded, open *http.Client
}

// NewSender makes a sender.
func NewSender(o Options) *Sender {
	if o.Timeout <= 0 {
		o.Timeout = Timeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Sender{Options: o}
	s.guarded, s.open = s.client(false), s.client(true)
	return s
}

// Failure is why a notice was not taken. Its text holds nothing that is secret of the
// target.
type Failure struct {
	// Gone: the target wants no notices any more. It is not to be tried again.
	Gone bool
	// RetryAfter is how long the target asks to be left alone; 0: it does not say.
	RetryAfter time.Duration
	Text       string
}

func (f *Failure) Error() string { return f.Text }

// Send makes one attempt, and returns what came back. Its error is a [*Failure].
func (s *Sender) Send(ctx context.Context, t Target, n Notice) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	n = t.Cut(n)
	link := Link(s.Page, n)
	switch t.Kind {
	case Webhook:
		answer, err = s.webhook(ctx, t, n, link)
	case Slack:
		answer, err = s.slack(ctx, t, n, link)
	case Mail:
		answer, err = s.mail(ctx, t, n, link)
	default:
		err = errors.New("there is no such kind of target")
	}
	if err == nil {
		return answer, nil
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		f = &Failure{Text: err.Error()}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			f.Text = "no answer within " + s.Timeout.String()
		}
	}
	f.Text = plain(t.masked(f.Text), 500)
	return "", f
}

// dialer connects for one target.
func (s *Sender) dialer(allowPrivate bool) *net.Dialer {
	d := &net.Dialer{Timeout: s.Timeout, Resolver: s.Resolver}
	if !allowPrivate {
		d.Control = guard
	}
	return d
}

func (s *Sender) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.Roots}
}

func (s *Sender) client(allowPrivate bool) *http.Client {
	return &http.Client{
		Timeout:       s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:       nil, // one would connect in our place, and past the guard
			DialContext: s.dialer(allowPrivate).DialContext, TLSClientConfig: s.tls(), ForceAttemptHTTP2: true,
			DisableCompression: true, MaxResponseHeaderBytes: mostRead, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		},
	}
}
