package notice

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mailbox is a small mail server.
type mailbox struct {
	tls    *tls.Config // it offers STARTTLS where set
	refuse string      // what it answers to RCPT, where set
	drop   bool        // it closes in place of an answer to QUIT
	silent bool

	mu    sync.Mutex
	got   []string // mails
	auths []string
	clear bool // a mail or a password came without TLS
}

func (m *mailbox) start(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var open sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); open.Wait() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { defer func() { _ = conn.Close() }(); m.talk(conn) })
		}
	}()
	return l.Addr().String()
}

func (m *mailbox) talk(conn net.Conn) {
	if m.silent {
		_, _ = bufio.NewReader(conn).ReadString('\n')
		return
	}
	secure, in := false, bufio.NewReader(conn)
	say := func(lines ...string) { fmt.Fprint(conn, strings.Join(lines, "\r\n")+"\r\n") }
	say("220 box")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch verb := strings.ToUpper(strings.Fields(line + " x")[0]); verb {
		case "EHLO":
			lines := []string{"250-box", "250-8BITMIME", "250 AUTH PLAIN LOGIN"}
			if m.tls != nil && !secure {
				lines[1] = "250-STARTTLS"
			}
			say(lines...)
		case "STARTTLS":
			say("220 go")
			secured := tls.Server(conn, m.tls)
			conn, in, secure = secured, bufio.NewReader(secured), true
		case "AUTH":
			m.note(func() { m.auths, m.clear = append(m.auths, strings.TrimSpace(line)), m.clear || !secure })
			say("235 ok")
		case "RCPT":
			say(orElse(m.refuse, "250 ok"))
		case "DATA":
			say("354 go")
			var b strings.Builder
			for line, err := in.ReadString('\n'); err == nil && line != ".\r\n"; line, err = in.ReadString('\n') {
				b.WriteString(line)
			}
			m.note(func() { m.got, m.clear = append(m.got, b.String()), m.clear || !secure })
			say("250 taken")
		case "QUIT":
			if !m.drop {
				say("221 bye")
			}
			return
		default:
			say("250 ok")
		}
	}
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

func (m *mailbox) note(f func()) { m.mu.Lock(); defer m.mu.Unlock(); f() }

// certified is a server's certificate for 127.0.0.1, and who believes it.
func certified(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return &tls.Config{Certificates: srv.TLS.Certificates}, roots
}

func byMail(address string) Target {
	return Target{Name: "mail", Kind: Mail, SMTP: address, From: "Interlock <interlock@acme.example>", To: []string{"ops@acme.example", "Ann <ann@acme.example>"},
		User: "interlock", password: hiddenWord, AllowPrivate: true, Titles: true}
}

func TestSend_Mail(t *testing.T) {
	config, roots := certified(t)
	box := &mailbox{tls: config, drop: true}
	n := some()
	n.Title, n.Roles = "Refund 5 € to Ann\r\nBcc: evil@evil.example\r\n\r\n<html>", []string{"re\r\nX-Evil: 1\r\n\r\nfunds"}
	until := at.Add(time.Hour)
	n.Until = &until
	s := NewSender(Options{Roots: roots, Page: "https://x.example", Now: func() time.Time { return at }})
	answer, err := s.Send(t.Context(), byMail(box.start(t)), n)
	require.NoError(t, err, "it was taken, however the connection ended")
	require.Contains(t, answer, "has taken it")

	require.Len(t, box.got, 1)
	require.False(t, box.clear, "all of it by TLS")
	require.Equal(t, []string{"AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00interlock\x00"+hiddenWord))}, box.auths)
	m, err := mail.ReadMessage(strings.NewReader(box.got[0]))
	require.NoError(t, err)
	require.Equal(t, "<n1@acme.example>", m.Header.Get("Message-ID"))
	require.Equal(t, "auto-generated", m.Header.Get("Auto-Submitted"))
	require.Equal(t, "acme/refund/k waits at gate 3.1 for role re X-Evil: 1 funds", m.Header.Get("Subject"))
	for header := range m.Header {
		require.NotContains(t, []string{"Bcc", "X-Evil"}, header)
	}
	date, err := m.Header.Date()
	require.NoError(t, err)
	require.True(t, date.Equal(at))
	require.Contains(t, m.Header.Get("Content-Type"), "text/plain")
	require.Contains(t, box.got[0], "https://x.example/runs/refund/k/gates/3.1")
	require.Contains(t, box.got[0], "Until 2026-11-29 11:00 UTC")
	require.NotContains(t, box.got[0], hiddenWord)
}

func TestSend_MailThatIsNotTaken(t *testing.T) {
	config, roots := certified(t)
	send := func(box *mailbox, o Options, change func(*Target)) *Failure {
		target := byMail(box.start(t))
		if change != nil {
			change(&target)
		}
		o.Timeout = time.Second
		_, err := NewSender(o).Send(t.Context(), target, some())
		return failure(t, err)
	}
	refused := &mailbox{tls: config, refuse: "550 5.1.1 nobody S3CR3T"}
	require.ErrorContains(t, send(refused, Options{Roots: roots}, nil), "550")
	require.Empty(t, refused.got)
	foreign := &mailbox{tls: config}
	require.ErrorContains(t, send(foreign, Options{}, nil), "certificate")
	clear := &mailbox{}
	named := newNames(t, map[string][]string{"box.example": {"127.0.0.1"}})
	send(clear, Options{Resolver: named}, func(t *Target) { t.SMTP = strings.Replace(t.SMTP, "127.0.0.1", "box.example", 1) })
	require.Empty(t, clear.auths, "no password without TLS")
	require.ErrorContains(t, send(&mailbox{silent: true}, Options{}, nil), "no answer within 1s")

	open := &mailbox{}
	target := byMail(open.start(t))
	target.User, target.password = "", ""
	_, err := NewSender(Options{}).Send(t.Context(), target, some())
	require.NoError(t, err, "a server of one's own may speak without TLS")
	require.Len(t, open.got, 1)
}

// Without allow_private STARTTLS is a must. The guard is not asked here: it would
// refuse the test's own server first.
func TestMailClient_Policy(t *testing.T) {
	s := NewSender(Options{})
	for _, c := range []struct {
		address string
		private bool
		want    string
	}{{"h.example:587", false, "TLSMandatory"}, {"h.example:25", true, "TLSOpportunistic"}, {"h.example:465", false, "NoTLS"}} {
		target := byMail(c.address)
		target.AllowPrivate = c.private
		client, err := s.mailClient(t.Context(), target)
		require.NoError(t, err)
		require.Equal(t, c.want, client.TLSPolicy())
	}
}

func TestSend_MailByTLSFromTheBeginning(t *testing.T) {
	config, roots := certified(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Write([]byte("220 hello\r\n"))
			_ = conn.Close()
		}
	}()
	s := NewSender(Options{Roots: roots})
	dial := s.dialMail(t.Context(), byMail("127.0.0.1:465"), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}, true)
	conn, err := dial(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "220 hello\r\n", line)
}
