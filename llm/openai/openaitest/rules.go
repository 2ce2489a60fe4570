package openaitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The provider's limits.
const (
	maxArguments = 1_048_576 // characters
	maxCallID    = 40
)

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// known are the members that the provider takes; another is refused.
var known = strings.Fields(`messages model tools tool_choice parallel_tool_calls stream stream_options max_tokens max_completion_tokens
	temperature top_p n stop seed user metadata store reasoning_effort verbosity service_tier logit_bias logprobs top_logprobs presence_penalty
	frequency_penalty response_format prediction modalities audio moderation web_search_options prompt_cache_key prompt_cache_retention safety_identifier`)

// wire is a request's body, as far as it is judged.
type wire struct {
	Model         string          `json:"model"`
	Messages      []wireMessage   `json:"messages"`
	Tools         []wireTool      `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int `json:"max_tokens"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
}

type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   *[]struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	CallID *string `json:"tool_call_id"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Check is the rule that a request's body breaks, or "".
func Check(body []byte) string { return read(body).Broken }

// read reads a request, and the first rule that it breaks.
func read(body []byte) ChatRequest {
	out := ChatRequest{Body: body}
	var members map[string]json.RawMessage
	var w wire
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil {
		out.Broken = "We could not parse the JSON body of your request."
		return out
	}
	if err := json.Unmarshal(body, &w); err != nil {
		out.Broken = "Invalid type: " + err.Error()
		return out
	}
	for _, name := range sortedKeys(members) {
		if !slices.Contains(known, name) {
			out.Broken = "Unrecognized request argument supplied: " + name
			return out
		}
	}
	out.Model, out.Stream = w.Model, w.Stream
	out.Usage = w.StreamOptions != nil && w.StreamOptions.IncludeUsage
	for _, n := range []*int{w.MaxTokens, w.MaxCompletionTokens} {
		if n != nil {
			out.MaxOutput = *n
		}
	}
	for _, check := range []func(*wire, *ChatRequest) string{checkTop, checkMessages, checkTools, checkChoice} {
		if out.Broken = check(&w, &out); out.Broken != "" {
			return out
		}
	}
	return out
}

func sortedKeys(m map[string]json.RawMessage) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func checkTop(w *wire, r *ChatRequest) string {
	switch {
	case w.Model == "":
		return "you must provide a model parameter"
	case w.MaxTokens != nil && w.MaxCompletionTokens != nil:
		return "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
	case (w.MaxTokens != nil || w.MaxCompletionTokens != nil) && r.MaxOutput < 1:
		return "Invalid 'max_tokens': integer below minimum value."
	case w.StreamOptions != nil && !w.Stream:
		return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	case len(w.Messages) == 0:
		return "Invalid 'messages': empty array."
	}
	return ""
}

// conversation is what the rules on messages remember.
type conversation struct {
	seen    map[string]bool // call ids
	pending []string        // calls without an answer
}

func checkMessages(w *wire, r *ChatRequest) string {
	c := conversation{seen: map[string]bool{}}
	for i, m := range w.Messages {
		content, isNull, ok := readContent(m.Content)
		if !ok {
			return fmt.Sprintf("Invalid type for 'messages[%d].content': expected a string or a list of parts.", i)
		}
		out := Message{Role: m.Role, Content: content}
		broken := ""
		switch m.Role {
		case "system", "developer", "user":
			if broken = c.answered(); broken == "" && isNull {
				broken = fmt.Sprintf("Invalid value for 'content' of messages[%d]: expected a string, got null.", i)
			}
		case "assistant":
			broken = c.assistant(i, m, &out)
		case "tool":
			broken = c.tool(i, m, isNull, &out)
		default:
			broken = fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
		}
		if broken != "" {
			return broken
		}
		r.Messages = append(r.Messages, out)
	}
	return c.answered()
}

func (c *conversation) answered() string {
	if len(c.pending) == 0 {
		return ""
	}
	return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
		"The following tool_call_ids did not have response messages: " + strings.Join(c.pending, ", ")
}

func (c *conversation) assistant(i int, m wireMessage, out *Message) string {
	if broken := c.answered(); broken != "" {
		return broken
	}
	if m.Calls == nil {
		if strings.TrimSpace(out.Content) == "" {
			return fmt.Sprintf("Invalid value for 'content' of messages[%d]: an assistant message has content or tool calls.", i)
		}
		return ""
	}
	if len(*m.Calls) == 0 {
		return fmt.Sprintf("[] is too short - 'messages.%d.tool_calls'", i)
	}
	for n, call := range *m.Calls {
		place, f := fmt.Sprintf("messages[%d].tool_calls[%d]", i, n), call.Function
		switch {
		case call.Type != "function":
			return fmt.Sprintf("Invalid value for '%s.type': '%s'.", place, call.Type)
		case call.ID == "":
			return fmt.Sprintf("Invalid '%s.id': empty string.", place)
		case utf8.RuneCountInString(call.ID) > maxCallID:
			return fmt.Sprintf("Invalid '%s.id': string too long. Expected a string with maximum length %d.", place, maxCallID)
		case c.seen[call.ID]:
			return fmt.Sprintf("Invalid '%s.id': duplicate id '%s'.", place, call.ID)
		case !functionName.MatchString(f.Name):
			return fmt.Sprintf("Invalid '%s.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", place)
		case f.Arguments == nil:
			return fmt.Sprintf("Missing required parameter: '%s.function.arguments'.", place)
		case utf8.RuneCountInString(*f.Arguments) > maxArguments:
			return fmt.Sprintf("Invalid '%s.function.arguments': string too long. Expected a string with maximum length %d.", place, maxArguments)
		case !object([]byte(*f.Arguments)):
			return fmt.Sprintf("Invalid '%s.function.arguments': not a JSON object.", place)
		}
		c.seen[call.ID] = true
		c.pending = append(c.pending, call.ID)
		out.Calls = append(out.Calls, Call{ID: call.ID, Name: f.Name, Arguments: *f.Arguments})
	}
	return ""
}

func (c *conversation) tool(i int, m wireMessage, isNull bool, out *Message) string {
	switch {
	case m.CallID == nil:
		return fmt.Sprintf("Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id' (messages[%d]).", i)
	case isNull:
		return fmt.Sprintf("Invalid value for 'content' of messages[%d]: expected a string, got null.", i)
	}
	at := slices.Index(c.pending, *m.CallID)
	if at < 0 {
		return fmt.Sprintf("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' (messages[%d], '%s').", i, *m.CallID)
	}
	c.pending = slices.Delete(c.pending, at, at+1)
	out.CallID = *m.CallID
	return ""
}

func checkTools(w *wire, r *ChatRequest) string {
	names := map[string]bool{}
	for i, t := range w.Tools {
		f := t.Function
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case t.Type != "function":
			return fmt.Sprintf("Invalid value for 'tools[%d].type': '%s'.", i, t.Type)
		case !functionName.MatchString(f.Name):
			return fmt.Sprintf("Invalid 'tools[%d].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", i)
		case names[f.Name]:
			return "Tool names must be unique: " + f.Name
		case len(f.Parameters) > 0 && (json.Unmarshal(f.Parameters, &schema) != nil || schema.Type != "object"):
			return fmt.Sprintf("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: %q'.", f.Name, schema.Type)
		}
		names[f.Name] = true
		r.Tools = append(r.Tools, Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	return ""
}

func checkChoice(w *wire, r *ChatRequest) string {
	if len(w.ToolChoice) == 0 {
		return ""
	}
	var word string
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case len(w.Tools) == 0:
		return "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
	case json.Unmarshal(w.ToolChoice, &word) == nil:
		if !slices.Contains([]string{"none", "auto", "required"}, word) {
			return "Invalid value for 'tool_choice': " + word
		}
	case json.Unmarshal(w.ToolChoice, &named) != nil || named.Type != "function":
		return "Invalid type for 'tool_choice'."
	case !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == named.Function.Name }):
		return fmt.Sprintf("Invalid value for 'tool_choice': function '%s' not found in 'tools'.", named.Function.Name)
	default:
		r.Only = named.Function.Name
	}
	return ""
}

// readContent is a text, or the texts of a list of parts.
func readContent(raw json.RawMessage) (text string, isNull, ok bool) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return "", true, true
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, false, true
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return "", false, false
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", false, false
		}
		text += p.Text
	}
	return text, false, true
}

func object(data []byte) bool {
	var v map[string]json.RawMessage
	return json.Unmarshal(data, &v) == nil && v != nil
}
