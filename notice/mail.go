package notice

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"
)

// implicitTLS is the port at which a mail server speaks TLS from the beginning.
const implicitTLS = "465"

// mail hands a mail to the target's server. Once that has taken it, the mail is
// sent, however the connection ends.
func (s *Sender) mail(ctx context.Context, t Target, n Notice, link string) (string, error) {
	m, err := s.message(t, n, link)
	if err != nil {
		return "", err
	}
	client, err := s.mailClient(ctx, t)
	if err != nil {
		return "", err
	}
	smtp, err := client.DialToSMTPClientWithContext(ctx)
	if err == nil {
		err = client.SendWithSMTPClient(smtp, m)
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", context.DeadlineExceeded
		}
		return "", fmt.Errorf("%w", mailError(err))
	}
	_ = client.CloseWithSMTPClient(smtp) // it is taken
	return "the mail server has taken it", nil
}

// mailError leaves out what is known: whom it goes to, and its id.
func mailError(err error) error {
	failed, ok := errors.AsType[*mail.SendError](err)
	if !ok || failed.ErrorCode() == 0 {
		return err
	}
	text, _, _ := strings.Cut(failed.Error(), ", affected ")
	return errors.New(text)
}

// message is the mail. Its id is the notice's, so that a reader's program knows a
// repeat. Subject and body hold no line of others: [plain] has made one of each, and
// the library encodes what is no ASCII.
func (s *Sender) message(t Target, n Notice, link string) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(m.From(t.From), m.To(t.To...)); err != nil {
		return nil, err
	}
	m.Subject(headline(n))
	m.SetDateWithValue(s.Now())
	m.SetMessageIDWithValue(n.ID + "@" + t.domain())
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, mailBody(n, link))
	return m, nil
}

// domain is that of the sender.
func (t Target) domain() string {
	from, err := netmail.ParseAddress(t.From)
	if err != nil {
		return "localhost" // the check of the file refuses it
	}
	return from.Address[strings.LastIndex(from.Address, "@")+1:]
}

func (s *Sender) mailClient(ctx context.Context, t Target) (*mail.Client, error) {
	host, port, err := net.SplitHostPort(t.SMTP)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	config := s.tls()
	config.ServerName = host
	policy := mail.TLSMandatory
	switch {
	case port == implicitTLS:
		policy = mail.NoTLS // it is TLS before anything is said
	case t.AllowPrivate:
		policy = mail.TLSOpportunistic
	}
	options := []mail.Option{mail.WithPort(n), mail.WithTimeout(s.Timeout), mail.WithTLSPolicy(policy), mail.WithTLSConfig(config),
		mail.WithHELO(t.domain()), mail.WithoutNoop(), mail.WithDialContextFunc(s.dialMail(ctx, t, config, port == implicitTLS))}
	if t.User != "" { // a password in clear text needs TLS
		options = append(options, mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthPlain, mail.SMTPAuthLogin),
			mail.WithUsername(t.User), mail.WithPassword(string(t.password)))
	}
	return mail.NewClient(host, options...)
}

// dialMail connects as webhooks do. The connection ends with the attempt, however
// slowly the server goes on.
func (s *Sender) dialMail(attempt context.Context, t Target, config *tls.Config, implicit bool) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := s.dialer(t.AllowPrivate)
		var conn net.Conn
		var err error
		if implicit {
			conn, err = (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, network, address)
		} else {
			conn, err = d.DialContext(ctx, network, address)
		}
		if err == nil {
			context.AfterFunc(attempt, func() { _ = conn.Close() })
		}
		return conn, err
	}
}
