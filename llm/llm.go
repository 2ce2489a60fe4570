// Package llm is the contract between Interlock and a language model: what is
// sent, what comes back, and which errors there are, in no provider's words.
//
// A driver translates a [Request] for one provider and its answer back into a
// [Response]. It repairs nothing, retries nothing, keeps nothing between calls
// and never reads [Request].View. Cache hints are the driver's own and are in
// no type here.
package llm

import (
	"context"
	"encoding/json"
	"math"

	"interlock/agent"
)

// Model answers requests. It is safe for concurrent use.
type Model interface {
	// Name is the model as configuration names it. Opaque items of an answer
	// are bound to the name that the answer gives ([Response].Model).
	Name() string
	// Generate makes one call. Its errors are of type [*Error]; one of another
	// type means that ctx ended.
	Generate(ctx context.Context, req Request) (Response, error)
}

// Request is all that a model call needs.
type Request struct {
	Messages  []Message
	Tools     []Tool
	Only      string // the one tool that must be called; "" leaves the choice to the model
	MaxOutput int    // tokens; 0 is the driver's default

	// Delta, where it is set, is called with each piece of the answer's text as it
	// is received, in order and by one goroutine, by drivers that stream: the text of
	// the response begins with them. What was handed out counts for nothing when
	// Generate fails.
	Delta func(text string)

	// View is what the messages were rendered from. Only scripted models and
	// tests read it: a driver must not, since what a provider is shown is
	// Messages and Tools and nothing else.
	View agent.View
}

// Bytes is the size of what would be sent: the JSON length of messages and
// tools. Equal requests have equal sizes. A request that does not encode, which
// [Validate] would explain, is larger than any limit.
func (r Request) Bytes() int {
	data, err := json.Marshal(struct {
		Messages []Message `json:"messages"`
		Tools    []Tool    `json:"tools"`
	}{r.Messages, r.Tools})
	if err != nil {
		return math.MaxInt32
	}
	return len(data)
}

// Role says who speaks.
type Role string

const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user" // the user, and what code tells the model
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // the answer to one call
)

// Message is one message of a request. Text is written even when it is empty:
// some providers require the member.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`

	// Of an assistant message.
	Calls  []Call     `json:"calls,omitempty"`
	Model  string     `json:"model,omitempty"`  // that wrote it
	Opaque agent.JSON `json:"opaque,omitempty"` // the provider's own items, bound to Model

	// Of a tool message.
	Call    string `json:"call,omitempty"` // id of the call that it answers
	Tool    string `json:"tool,omitempty"` // name in that call; some providers want it again
	IsError bool   `json:"is_error,omitempty"`
}

// OpaqueFor is the message's opaque items if the model of that name wrote them,
// else nothing: another model's provider would refuse them.
func (m Message) OpaqueFor(model string) agent.JSON {
	if m.Model != model {
		return nil
	}
	return m.Opaque
}

// Call is a call in an assistant message. ID is ours: unique in the run, of
// letters, digits, _ and -, and legal for every provider. ProviderID is as the
// provider gave it, and may be empty or repeated.
type Call struct {
	ID         string     `json:"id"`
	ProviderID string     `json:"provider_id,omitempty"`
	Tool       string     `json:"tool"`
	Args       agent.JSON `json:"args"` // an object
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Schema      agent.JSON `json:"schema"` // JSON Schema of the arguments, an object
}

// Response is what the model answered.
type Response struct {
	Text   string
	Calls  []agent.RawCall // arguments as the model wrote them, never repaired
	Finish agent.FinishReason
	Usage  agent.Usage // disjoint parts
	Model  string      // as the provider names the model that answered
	Opaque agent.JSON  // the provider's own items, to be sent back unchanged
	ID     string      // the provider's id of the response
}

// System makes a system message.
func System(text string) Message { return Message{Role: RoleSystem, Text: text} }

// User makes a user message.
func User(text string) Message { return Message{Role: RoleUser, Text: text} }

// Assistant makes an assistant message.
func Assistant(text string, calls ...Call) Message {
	return Message{Role: RoleAssistant, Text: text, Calls: calls}
}

// Answer makes the tool message that answers a call.
func Answer(call Call, text string, isError bool) Message {
	return Message{Role: RoleTool, Text: text, Call: call.ID, Tool: call.Tool, IsError: isError}
}
