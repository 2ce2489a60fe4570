// Package mail is a small mail service with its client: the part of the sample
// agent's outside world that is reached over a network. The service dedupes
// on a key that the sender chooses: a message sent again under its key is not
// a second message. It delivers to an outbox that can be read, and to nobody.
package mail

import (
	"errors"
	"fmt"
	"strings"

	"interlock/agent"
)

// Message is what the service takes.
type Message struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// Sent says that a message is in the outbox.
type Sent struct {
	ID string `json:"id"`
}

// Receipt is what a customer is told of a refund.
type Receipt struct {
	RefundID   string      `json:"refund_id"`
	OrderID    string      `json:"order_id"`
	CustomerID string      `json:"customer_id"`
	Amount     agent.Money `json:"amount"`
}

// Message is the receipt in words. Equal receipts give equal messages, with no
// date and nothing random in them: a retry under the same key must bring the
// same message.
func (r Receipt) Message() Message {
	return Message{
		To:      r.CustomerID + "@customers.example",
		Subject: "Your refund for order " + r.OrderID,
		Text: fmt.Sprintf("Hello,\n\nwe have refunded %s for your order %s.\nThe number of the refund is %s.\n\nYour shop\n",
			r.Amount, r.OrderID, r.RefundID),
	}
}

// Kind is what is known of a message that was not answered with an id.
type Kind string

const (
	NotSent Kind = "not_sent" // nothing reached the service: trying again may help
	Refused Kind = "refused"  // the service took nothing and will not: trying again is of no use
	Unknown Kind = "unknown"  // it may be in the outbox: only the same key is safe
)

// Error is the error of every method of [Client].
type Error struct {
	Kind   Kind
	Status int    // of the service's answer, 0 where there was none
	Reason string // for people
	Err    error  // the cause, where there is one
}

func (e *Error) Error() string {
	what := map[Kind]string{NotSent: "mail not sent", Refused: "mail refused", Unknown: "not known whether mail was sent"}[e.Kind]
	if e.Err == nil {
		return what + ": " + e.Reason
	}
	return what + ": " + e.Reason + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// maxKey bounds a key, in bytes.
const maxKey = 200

// checkKey holds what a key may be: it travels in a header, where it must
// arrive as it was written.
func checkKey(key string) error {
	if key == "" {
		return errors.New("the Idempotency-Key is missing")
	}
	if len(key) > maxKey {
		return fmt.Errorf("the Idempotency-Key is longer than %d bytes", maxKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the Idempotency-Key must be visible ASCII characters without spaces")
	}
	return nil
}

// check refuses what could not be a mail. A line break in an address or in a
// subject would let its writer add headers.
func (m Message) check() error {
	name, host, ok := strings.Cut(m.To, "@")
	if !ok || name == "" || host == "" || strings.Contains(host, "@") || strings.ContainsFunc(m.To, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("to is not an address")
	}
	if m.Subject == "" || strings.ContainsFunc(m.Subject, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("subject must be one line and not empty")
	}
	// No mail can carry a NUL.
	if m.Text == "" || strings.ContainsRune(m.Text, 0) {
		return errors.New("text must not be empty, nor contain NUL")
	}
	return nil
}
