package agent_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// wrong has a mistake in every field but the first.
type wrong struct {
	Fine     string         `json:"fine" set:"user"`
	NoTag    string         `set:"tool"`
	Dash     string         `json:"-" set:"tool"`
	Price    float64        `json:"price" set:"tool"`
	Nested   wrongNested    `json:"nested" set:"tool"`
	Upper    string         `json:"Upper" set:"tool"`
	Nobody   string         `json:"nobody" set:"nobody"`
	Unset    string         `json:"unset"`
	Lost     lossy          `json:"lost" set:"tool"`
	OneWay   oneWay         `json:"one_way" set:"tool"`
	Any      any            `json:"any" set:"tool"`
	ByNumber map[int]string `json:"by_number" set:"tool"`
	Orphan   string         `json:"orphan" set:"tool" follows:"nothing"`
	Self     string         `json:"self" set:"tool" follows:"other"`
	Other    string         `json:"other" set:"tool" follows:"self"`
	Mask     string         `json:"mask" set:"tool" sensitive:"yes"`
	Shown    string         `json:"shown" set:"tool" view:"no"`
	Tree     tree           `json:"tree" set:"tool"`
	hidden   string
}

type wrongNested struct {
	Rates []float32 `json:"rates"`
	Skip  string    `json:"-"`
}

type tree struct {
	Kids []tree `json:"kids"`
}

// lossy survives JSON as text, and loses B on the way.
type lossy struct{ A, B int }

func (l lossy) MarshalJSON() ([]byte, error)     { return json.Marshal(l.A) }
func (l *lossy) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &l.A) }

// oneWay is written as text and cannot be read back.
type oneWay struct{ A int }

func (o oneWay) MarshalText() ([]byte, error) { return []byte("one way"), nil }

type noArgs struct{}
type mapArgs struct {
	Prices map[int]string `json:"prices"`
}
type quotedArgs struct {
	ID int64 `json:"id,string"`
}

func reader[S, A any](name string) *tool.Tool[S, A, sent] {
	return tool.ReadOnly(name, none[A, sent], func(*S, A, sent) error { return nil })
}

// mistakes are the lines of a definition's error, without the heading.
func mistakes(t *testing.T, d *agent.Definition) []string {
	err := d.Err()
	if err == nil {
		return nil
	}
	require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err))
	lines := strings.Split(err.Error(), "\n  ")
	return lines[1:]
}

// Every mistake is reported at once, each with where it is.
func TestDefine_AllMistakes(t *testing.T) {
	type S = wrong
	tools := []agent.Tool[S]{
		reader[S, noArgs]("Bad-Name"),
		reader[S, noArgs]("set_fields"),
		reader[S, noArgs]("twin"), reader[S, noArgs]("twin"),
		reader[S, string]("text_args"),
		reader[S, map[string]int]("map_args"),
		reader[S, *noArgs]("pointer_args"),
		reader[S, any]("any_args"),
		reader[S, tree]("tree_args"),
		reader[S, mapArgs]("number_keys"),
		reader[S, quotedArgs]("quoted_args"),
		tool.Keyed("hasty", keyed[noArgs, sent], func(*S, noArgs, sent) error { return nil }).Quick(),
		tool.ReadOnly("vague", none[noArgs, any], func(*S, noArgs, any) error { return nil }).Verifies("price", "prise"),
		reader[S, noArgs]("gated").Gate(tool.Gate[S, noArgs]{Reads: []string{"fine", "amont"}, Expires: -time.Hour}),
		reader[S, noArgs]("roles").Gate(tool.Gate[S, noArgs]{Roles: []string{"Boss"}, Edit: []string{"sum", agent.EveryArgument}}),
	}
	d := agent.Define(agent.Spec[string, S]{
		Name: "Refund-Agent", Version: 0, Instructions: " \n",
		Phases: []agent.Phase[S]{
			{Name: "first", Tools: append(tools, tools[0]), Moves: []agent.Move[S]{
				{To: "nowhere"},
				{To: "twice", When: func(s agent.Situation[S]) error { return s.Confirmed("fine", "amonut") }},
				{To: "twice", When: func(s agent.Situation[S]) error { return s.VerifiedWithin("total", time.Hour) },
					Gate: &agent.MoveGate[S]{Reads: []string{"nil"}}},
				{To: "Bad Phase"},
			}},
			{Name: "twice", Say: func(agent.Situation[S]) string { return "" }},
			{Name: "twice", Moves: []agent.Move[S]{{To: "first"}}},
			{Name: "island", Moves: []agent.Move[S]{{To: "first"}}},
			{Name: "Bad Phase", Moves: []agent.Move[S]{{To: "first"}}},
		},
		Tools: []agent.Tool[S]{reader[S, noArgs]("nowhere_used")},
	})
	_ = wrong{hidden: ""}
	require.ElementsMatch(t, []string{
		`name: "Refund-Agent" is not [a-z][a-z0-9_]*, at most 64`,
		`version: is 0; versions start at 1`,
		`instructions: are empty: the model would not know what to do`,
		`init: is missing: a run needs a first state`,
		`state.NoTag: needs a json tag: the name is persisted and must survive a Go rename`,
		`state.Dash: json:"-": it would be lost at the first event`,
		`state.Price: a float: two machines may round it differently; use an integer or agent.Money`,
		`state.Nested.Rates: a float: two machines may round it differently; use an integer or agent.Money`,
		`state.Nested.Skip: is not in the JSON: it would be lost at the first event`,
		`state.Upper: name "Upper" is not [a-z][a-z0-9_]*`,
		`state.Nobody: tag set:"nobody" must name who may set the field: start, tool, model, user, reviewer, system`,
		`state.Unset: tag set:"" must name who may set the field: start, tool, model, user, reviewer, system`,
		`state.Lost: does not survive JSON: B is not in the JSON as a value that can be read back`,
		`state.OneWay: does not survive JSON: the value: string does not fit struct`,
		`state.Any: an interface: numbers in it would become floats; name the type`,
		`state.ByNumber: ForType(map[int]string): unsupported map key type int`,
		`state.ByNumber: map keys must be strings`,
		`state.orphan: follows "nothing", which is no field`,
		`state.self: follows itself`,
		`state.other: follows itself`,
		`state.Mask: tag sensitive:"yes" means nothing: it is sensitive:"true" or absent`,
		`state.Shown: tag view:"no" means nothing: it is view:"-" or absent`,
		`state.Tree: ForType(agent_test.tree): computing element schema: cycle detected for type agent_test.tree`,
		`state.hidden: unexported: it would be lost at the first event`,
		`phase first: tool name "Bad-Name" is not [a-z][a-z0-9_]*, at most 64`,
		`phase first: lists tool Bad-Name twice`,
		`tool set_fields: has the name of a control call`,
		`phase first: two tools are named twin`,
		`phase first: lists tool twin twice`,
		`tool text_args: arguments must be a struct: providers take only an object with named members`,
		`tool map_args: arguments must be a struct: providers take only an object with named members`,
		`tool pointer_args: arguments must be a struct: providers take only an object with named members`,
		`tool any_args: arguments must be a struct: providers take only an object with named members`,
		`tool tree_args: arguments: ForType(agent_test.tree): computing element schema: cycle detected for type agent_test.tree`,
		`tool number_keys: arguments: ForType(agent_test.mapArgs): unsupported map key type int`,
		`tool quoted_args: arguments: no call could be right: the JSON of agent_test.quotedArgs does not match its schema: /id must be integer, not string`,
		`tool hasty: is quick, which only a ReadOnly tool may be`,
		`tool vague: result: an interface: numbers in it would become floats; name the type`,
		`tool vague: Verifies names "prise", which is no field of the state`,
		`tool gated: has a gate without a role: nobody could decide`,
		`tool gated: gate expires -1h0m0s after it opens`,
		`tool gated: the gate's Reads names "amont", which is no field of the state`,
		`tool roles: gate role "Boss" is not [a-z][a-z0-9_]*`,
		`tool roles: gate lets "sum" be edited, which is no argument`,
		`tool roles: gate lets every argument be edited, and names others beside "*"`,
		`tool nowhere_used: is in no phase: no phase lists it and none has an Enter that could call it`,
		`phase first: moves to "nowhere", which is no phase`,
		`phase first: has two moves to twice`,
		`phase first move twice: has a gate without a role: nobody could decide`,
		`phase first move twice: the guard names "amonut", which is no field of the state`,
		`phase first move twice: the guard names "total", which is no field of the state`,
		`phase first move twice: the gate's Reads names "nil", which is no field of the state`,
		`phase twice: is defined twice`,
		`phase twice: has Say, which only a final phase may have`,
		`phase twice: is not final and has no moves: a run could never leave it`,
		`phase island: cannot be reached from first`,
		`phases: phase name "Bad Phase" is not [a-z][a-z0-9_]*`,
		`phases: none is final: a run could never end`,
	}, mistakes(t, d))
}

type plain struct {
	A string      `json:"a" set:"user"`
	B agent.Money `json:"b" set:"tool" follows:"a"`
}

func plainSpec() agent.Spec[start, plain] {
	return agent.Spec[start, plain]{Name: "plain", Version: 1, Instructions: "Do.", Init: func(start) (plain, error) { return plain{}, nil },
		Phases: []agent.Phase[plain]{{Name: "open", Tools: []agent.Tool[plain]{reader[plain, findArgs]("look")}, Moves: []agent.Move[plain]{{To: "done"}}},
			{Name: "done", Final: true}}}
}

// raw is a tool that no constructor makes.
type raw struct{ agent.ToolSpec[plain] }

func (r *raw) Spec() agent.ToolSpec[plain] { return r.ToolSpec }

// What one definition cannot have together with the others.
func TestDefine_OtherMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*agent.Spec[start, plain])
		want   []string
	}{
		"nothing": {func(*agent.Spec[start, plain]) {}, nil},
		"no phases": {func(s *agent.Spec[start, plain]) { s.Phases = nil },
			[]string{`phases: there are none`}},
		"a final phase with moves": {func(s *agent.Spec[start, plain]) { s.Phases[1].Moves = []agent.Move[plain]{{To: "open"}} },
			[]string{`phase done: is final but has moves`}},
		"Enter names an unknown field": {func(s *agent.Spec[start, plain]) {
			s.Phases[1].Enter = func(s agent.Situation[plain]) []agent.Call { _ = s.Confirmed("c"); return nil }
		}, []string{`phase done: Enter names "c", which is no field of the state`}},
		"a limit below zero": {func(s *agent.Spec[start, plain]) { s.Limits.Handled, s.Limits.View = -1, -2 },
			[]string{`limits: View is -2; only a budget can be without a limit`, `limits: Handled is -1; only a budget can be without a limit`}},
		"a long name": {func(s *agent.Spec[start, plain]) { s.Name = strings.Repeat("a", 65) },
			[]string{`name: "` + strings.Repeat("a", 65) + `" is not [a-z][a-z0-9_]*, at most 64`}},
		"an effect that there is not": {func(s *agent.Spec[start, plain]) {
			s.Phases[0].Tools = append(s.Phases[0].Tools, &raw{agent.ToolSpec[plain]{Name: "shot", Effect: "sometimes",
				Args: reflect.TypeFor[noArgs](), Result: reflect.TypeFor[sent]()}})
		}, []string{`tool shot: there is no effect "sometimes"`}},
	} {
		spec := plainSpec()
		c.change(&spec)
		require.Equal(t, c.want, mistakes(t, agent.Define(spec)), name)
	}
}

func TestDefine_StateNotStruct(t *testing.T) {
	d := agent.Define(agent.Spec[start, map[string]string]{Name: "m", Version: 1, Instructions: "x",
		Init:   func(start) (map[string]string, error) { return nil, nil },
		Phases: []agent.Phase[map[string]string]{{Name: "a", Moves: []agent.Move[map[string]string]{{To: "b"}}}, {Name: "b", Final: true}}})
	require.Equal(t, []string{`state: the state must be a struct, not map[string]string`}, mistakes(t, d))
}

// A tool that only an Enter function calls is found, also where Enter asks
// what the user has confirmed.
func TestDefine_FindsToolsOfEnter(t *testing.T) {
	spec := plainSpec()
	mail := reader[plain, noArgs]("send")
	spec.Phases[1].Enter = func(s agent.Situation[plain]) []agent.Call {
		if s.Confirmed("a") != nil {
			return []agent.Call{mail.With(noArgs{})}
		}
		return nil
	}
	d := agent.Define(spec)
	require.NoError(t, d.Err())
	_, known := d.Tool("send")
	require.True(t, known)
}

func TestDefine_Correct(t *testing.T) {
	for name, def := range agents {
		d := def()
		require.NoError(t, d.Err(), name)
		require.Equal(t, d.Fingerprint(), def().Fingerprint(), "Define twice, one fingerprint")
		require.Len(t, d.Fingerprint(), 16)
		require.Equal(t, d.InstructionsDigest(), def().InstructionsDigest())
	}
}

func TestDefinition_Fingerprint(t *testing.T) {
	type gate = agent.MoveGate[plain]
	base := agent.Define(plainSpec()).Fingerprint()
	find := func(s *agent.Spec[start, plain], f *tool.Tool[plain, findArgs, sent]) {
		s.Phases[0].Tools = []agent.Tool[plain]{f}
	}
	seen := map[string]string{base: "the definition itself"}
	for _, c := range []struct {
		name   string
		change func(*agent.Spec[start, plain])
	}{
		{"name", func(s *agent.Spec[start, plain]) { s.Name = "other" }},
		{"version", func(s *agent.Spec[start, plain]) { s.Version = 2 }},
		{"argument schema", func(s *agent.Spec[start, plain]) {
			s.Phases[0].Tools = []agent.Tool[plain]{reader[plain, refundArgs]("look")}
		}},
		{"tool name", func(s *agent.Spec[start, plain]) { find(s, reader[plain, findArgs]("see")) }},
		{"effect", func(s *agent.Spec[start, plain]) {
			s.Phases[0].Tools = []agent.Tool[plain]{tool.Keyed("look", keyed[findArgs, sent], func(*plain, findArgs, sent) error { return nil })}
		}},
		{"quick", func(s *agent.Spec[start, plain]) { find(s, reader[plain, findArgs]("look").Quick()) }},
		{"repeatable", func(s *agent.Spec[start, plain]) { find(s, reader[plain, findArgs]("look").Repeatable()) }},
		{"tool gate", func(s *agent.Spec[start, plain]) {
			find(s, reader[plain, findArgs]("look").Gate(tool.Gate[plain, findArgs]{Roles: []string{"a"}}))
		}},
		{"gate roles", func(s *agent.Spec[start, plain]) {
			find(s, reader[plain, findArgs]("look").Gate(tool.Gate[plain, findArgs]{Roles: []string{"b"}}))
		}},
		{"gate reads", func(s *agent.Spec[start, plain]) {
			find(s, reader[plain, findArgs]("look").Gate(tool.Gate[plain, findArgs]{Roles: []string{"a"}, Reads: []string{"a"}}))
		}},
		{"gate expiry", func(s *agent.Spec[start, plain]) {
			find(s, reader[plain, findArgs]("look").Gate(tool.Gate[plain, findArgs]{Roles: []string{"a"}, Expires: time.Hour}))
		}},
		{"move gate", func(s *agent.Spec[start, plain]) { s.Phases[0].Moves[0].Gate = &gate{Roles: []string{"a"}} }},
		{"auto", func(s *agent.Spec[start, plain]) { s.Phases[0].Moves[0].Auto = true }},
		{"phase name", func(s *agent.Spec[start, plain]) { s.Phases[1].Name, s.Phases[0].Moves[0].To = "end", "end" }},
		{"one more phase", func(s *agent.Spec[start, plain]) {
			s.Phases[0].Moves = append(s.Phases[0].Moves, agent.Move[plain]{To: "gone"})
			s.Phases = append(s.Phases, agent.Phase[plain]{Name: "gone", Final: true})
		}},
		{"tool in another phase", func(s *agent.Spec[start, plain]) { s.Phases[1].Tools = s.Phases[0].Tools }},
	} {
		spec := plainSpec()
		c.change(&spec)
		d := agent.Define(spec)
		require.NoError(t, d.Err(), c.name)
		require.Empty(t, seen[d.Fingerprint()], "%s has the fingerprint of %s", c.name, seen[d.Fingerprint()])
		seen[d.Fingerprint()] = c.name
	}

	// Instructions and code may change without a new version.
	spec := plainSpec()
	spec.Instructions = "Do it well."
	spec.Init = func(start) (plain, error) { return plain{}, errors.New("never") }
	spec.Phases[0].Moves[0].When = func(agent.Situation[plain]) error { return errors.New("not yet") }
	spec.Phases[1].Say = func(agent.Situation[plain]) string { return "Bye." }
	find(&spec, tool.ReadOnly("look", none[findArgs, sent], func(*plain, findArgs, sent) error { return errors.New("no") }))
	d := agent.Define(spec)
	require.Equal(t, base, d.Fingerprint())
	require.NotEqual(t, agent.Define(plainSpec()).InstructionsDigest(), d.InstructionsDigest())
}

// The state's type and the start input's are part of the fingerprint.
func TestDefinition_FingerprintOfTypes(t *testing.T) {
	type one struct {
		A string `json:"a" set:"user"`
	}
	type typed struct {
		A int64 `json:"a" set:"user"`
	}
	type setter struct {
		A string `json:"a" set:"user,tool"`
	}
	type hidden struct {
		A string `json:"a" set:"user" view:"-"`
	}
	type masked struct {
		A string `json:"a" set:"user" sensitive:"true"`
	}
	type more struct {
		A string `json:"a" set:"user"`
		B string `json:"b" set:"user"`
	}
	type following struct {
		A string `json:"a" set:"user"`
		B string `json:"b" set:"user" follows:"a"`
	}
	prints := []string{printOf[start, one](t), printOf[start, typed](t), printOf[start, setter](t), printOf[start, hidden](t),
		printOf[start, masked](t), printOf[start, more](t), printOf[start, following](t), printOf[noArgs, one](t)}
	seen := map[string]bool{}
	for i, p := range prints {
		require.False(t, seen[p], "type %d has the fingerprint of an earlier one", i)
		seen[p] = true
	}
}

func printOf[In, S any](t *testing.T) string {
	d := agent.Define(agent.Spec[In, S]{Name: "a", Version: 1, Instructions: "x", Init: func(In) (s S, err error) { return s, nil },
		Phases: []agent.Phase[S]{{Name: "a", Moves: []agent.Move[S]{{To: "b"}}}, {Name: "b", Final: true}}})
	require.NoError(t, d.Err())
	return d.Fingerprint()
}
