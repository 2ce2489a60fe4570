// Package llmtest is the suite that every driver of [llm.Model] passes: what is
// sent, what comes back, which error is of which kind, and what is never done.
// It knows no wire format; a driver brings a fake of its provider that does.
package llmtest

import (
	"net/http"
	"testing"
	"time"

	"interlock/llm"
)

// Driver is the driver under test. A driver with modes, streaming for example,
// runs the suite in each.
type Driver struct {
	// New makes the driver for a provider at url. Its model has any name.
	New func(t testing.TB, url, key string) llm.Model
	// Fake starts a provider that ends with the test.
	Fake func(t testing.TB) Fake
	// Environment are all variables that the driver's SDK reads by itself.
	Environment []string
}

// Fake is a provider that speaks the driver's wire format and judges requests by
// the provider's rules. It is safe for concurrent use.
type Fake interface {
	URL() string
	Key() string // the one that it accepts; it repeats any other in its refusal
	// Reply sets how every request is answered from now on.
	Reply(answer func(llm.Request) Answer)
	// Sent are the requests that came, in order.
	Sent() []Sent
}

// Sent is a request as the provider reads it, in neutral words: call ids are
// those of the wire, Model, Opaque, ProviderID, IsError and View are empty.
type Sent struct {
	llm.Request
	Header http.Header
	Body   []byte
	Broken string // the provider's rule that it breaks, or ""
}

// Answer is what the fake answers: a response, or a fault in place of one.
type Answer struct {
	llm.Response
	Fault      Fault
	RetryAfter time.Duration // announced with a fault, in the provider's way
}

// Fault is a failure as the provider has it.
type Fault string

// Faults, and the kind that a driver makes of each.
const (
	Unavailable  Fault = "unavailable"  // the provider answers that it is down
	Overloaded   Fault = "overloaded"   // it says that it is busy, without a header
	RateLimited  Fault = "rate limited" // too many requests
	NoQuota      Fault = "no quota"     // the account is used up
	Unauthorized Fault = "unauthorized" // the key is wrong
	Forbidden    Fault = "forbidden"    // the key has no right
	Refused      Fault = "refused"      // the request is invalid
	NoModel      Fault = "no model"     // the model does not exist
	TooLong      Fault = "too long"     // the context is too long
	ErrorInside  Fault = "error inside" // a success whose body is an error of the provider's side
	Garbage      Fault = "garbage"      // a success whose body is no answer at all
	Page         Fault = "page"         // a proxy's HTML in place of an answer
	Dropped      Fault = "dropped"      // the connection is closed without an answer
	Cut          Fault = "cut"          // it is closed in the middle of one, which Response is
	Hang         Fault = "hang"         // nothing comes, until the client gives up
)

// kinds are what a driver makes of each fault; a [Hang] ends with the context.
var kinds = map[Fault]llm.Kind{
	Unavailable:  llm.KindUnavailable,
	Overloaded:   llm.KindUnavailable,
	RateLimited:  llm.KindRateLimited,
	NoQuota:      llm.KindQuota,
	Unauthorized: llm.KindUnauthorized,
	Forbidden:    llm.KindUnauthorized,
	Refused:      llm.KindRefused,
	NoModel:      llm.KindRefused,
	TooLong:      llm.KindContextTooLong,
	ErrorInside:  llm.KindUnavailable,
	Garbage:      llm.KindInvalidAnswer,
	Page:         llm.KindUnavailable,
	Dropped:      llm.KindUnavailable,
	Cut:          llm.KindUnavailable,
}

// Run runs the suite.
func Run(t *testing.T, d Driver) {
	for name, run := range map[string]func(*testing.T, Driver){
		"Requests": requests, "Answers": answers, "Usage": usages, "Faults": faults, "RetryAfter": retryAfter,
		"RefusedUnsent": refusedUnsent, "Cancel": cancels, "Environment": environment, "KeyIsKept": keyIsKept, "Concurrent": concurrent,
	} {
		t.Run(name, func(t *testing.T) { run(t, d) })
	}
}

// Always answers every request alike.
func Always(a Answer) func(llm.Request) Answer { return func(llm.Request) Answer { return a } }

// start is a fake that answers, and the driver in front of it.
func start(t *testing.T, d Driver, a Answer) (Fake, llm.Model) {
	t.Helper()
	fake := d.Fake(t)
	fake.Reply(Always(a))
	return fake, d.New(t, fake.URL(), fake.Key())
}
