package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"interlock/agent"
	"interlock/llm"
)

const (
	maxArguments = 1 << 20 // characters of a call's arguments that OpenAI takes back
	maxCallID    = 40      // characters of a call's id that OpenAI takes
	shortCallID  = 9       // characters of one that Mistral takes
)

// builder makes requests. The same llm.Request makes the same body.
type builder struct {
	model    string
	limit    OutputLimit
	output   int
	usage    bool // ask for the usage of a stream
	shortIDs bool
	extra    map[string]any
}

func (b builder) params(req llm.Request) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{Model: b.model}
	if err := llm.Validate(req.Messages); err != nil {
		return p, err
	}
	ids := b.callIDs(req.Messages)
	for _, m := range req.Messages {
		p.Messages = append(p.Messages, message(m, ids))
	}
	for _, t := range req.Tools {
		f, err := function(t)
		if err != nil {
			return p, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	if req.Only != "" {
		if !slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == req.Only }) {
			return p, fmt.Errorf("tool %q must be called and is not offered", req.Only)
		}
		p.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: req.Only})
	}
	output := req.MaxOutput
	if output <= 0 {
		output = b.output
	}
	switch {
	case output <= 0:
	case b.limit == MaxTokens:
		p.MaxTokens = sdk.Int(int64(output))
	default:
		p.MaxCompletionTokens = sdk.Int(int64(output))
	}
	if b.usage {
		p.StreamOptions.IncludeUsage = sdk.Bool(true)
	}
	if len(b.extra) > 0 {
		p.SetExtraFields(b.extra)
	}
	return p, nil
}

func message(m llm.Message, ids map[string]string) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case llm.RoleSystem:
		return sdk.SystemMessage(m.Text)
	case llm.RoleUser:
		return sdk.UserMessage(m.Text)
	case llm.RoleTool:
		return sdk.ToolMessage(m.Text, ids[m.Call]) // with its content, also where that is empty
	}
	out := sdk.ChatCompletionAssistantMessageParam{}
	if m.Text != "" { // else it has calls, and the content is absent
		out.Content.OfString = sdk.String(m.Text)
	}
	for _, c := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{ID: ids[c.ID],
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Tool, Arguments: arguments(c.Args)}}})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &out}
}

// arguments are the bytes as they stand, so that no number changes. Arguments
// beyond what the provider takes back would have every later request refused: a
// short form stands for them.
func arguments(args agent.JSON) string {
	if len(args) > maxArguments {
		return fmt.Sprintf(`{"arguments_left_out_bytes":%d}`, len(args))
	}
	return args.String()
}

// function is a tool as it is, not strict: optional arguments stay optional.
func function(t llm.Tool) (shared.FunctionDefinitionParam, error) {
	f := shared.FunctionDefinitionParam{Name: t.Name}
	if !llm.ValidName(t.Name) {
		return f, errors.New("the name is not 1 to 64 letters, digits, _ or -")
	}
	if t.Description != "" {
		f.Description = sdk.String(t.Description)
	}
	// Raw members: a schema through any would round its large integers.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(t.Schema, &members); err != nil {
		return f, fmt.Errorf("the schema is no JSON object: %w", err)
	}
	f.Parameters = make(shared.FunctionParameters, len(members))
	for name, raw := range members {
		f.Parameters[name] = raw
	}
	return f, nil
}

// callIDs gives each call's id a form that the server takes: as it is, or one
// made of its hash. It depends on the calls alone, so that a later request with
// the same beginning has the same ids.
func (b builder) callIDs(messages []llm.Message) map[string]string {
	out, used := map[string]string{}, map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls {
			id := b.callID(c.ID)
			for n := 2; used[id]; n++ {
				id = b.hashed(fmt.Sprintf("%s#%d", c.ID, n))
			}
			out[c.ID], used[id] = id, true
		}
	}
	return out
}

func (b builder) callID(id string) string {
	if !b.shortIDs && len(id) <= maxCallID {
		return id
	}
	return b.hashed(id)
}

func (b builder) hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	if !b.shortIDs {
		return "h_" + hex.EncodeToString(sum[:16])
	}
	return new(big.Int).SetBytes(sum[:]).Text(36)[:shortCallID]
}
