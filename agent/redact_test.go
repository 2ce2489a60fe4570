package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// Sensitive fields are masked for people, in the run and in what sets them, and
// stay as they are in the run itself.
func TestMasked(t *testing.T) {
	def := deskAgent()
	m := agent.NewMachine(def)
	m.Step(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), "", agent.Started{Tenant: "acme", Key: "k", FirstRunID: "r", Rules: agent.Rules, Limits: def.Limits(),
		Principal: agent.Principal{Subject: "u"}, User: "u", Body: agent.JSON(`{"customer_id":"c-1"}`)})
	run := m.Run()
	require.Equal(t, []string{"secret"}, run.Sensitive)
	require.Contains(t, run.State.String(), `"secret":"c-1"`)
	require.Contains(t, run.Masked().State.String(), `"secret":"(masked)"`)
	require.Contains(t, run.State.String(), `"secret":"c-1"`, "the run itself stays")
	for _, e := range m.Batch().Events {
		require.NotContains(t, agent.Redacted(run.Redaction(), e).Data.String(), `"secret":"c-1"`, e.Type)
		require.Equal(t, e, agent.Redacted(&agent.Redaction{}, e))
	}
}

type cardState struct {
	Customer string `json:"customer" set:"start"`
	Card     card   `json:"card"     set:"tool" sensitive:"true"`
	IBAN     string `json:"iban"     set:"user" sensitive:"true"`
	Sure     bool   `json:"sure"     set:"tool" sensitive:"true"`
}
type card struct {
	Number string `json:"number"`
	Month  int    `json:"month"`
}
type found struct {
	Cards []card `json:"cards"`
	Open  bool   `json:"open"`
}
type payBy struct {
	Number string            `json:"number"`
	Notes  map[string]string `json:"notes"`
}

func cardAgent() *agent.Definition {
	find := tool.ReadOnly("find", none[start, found], func(s *cardState, _ start, f found) error {
		s.Card, s.Sure = f.Cards[0], true
		return nil
	})
	pay := tool.Keyed("pay", keyed[payBy, sent], func(*cardState, payBy, sent) error { return nil }).
		Gate(tool.Gate[cardState, payBy]{Roles: []string{"boss"}, Edit: []string{agent.EveryArgument}, Reads: []string{"card", "customer"}})
	return agent.Define(agent.Spec[start, cardState]{Name: "card", Version: 1, Instructions: "Pay.",
		Init:   func(in start) (cardState, error) { return cardState{Customer: in.CustomerID}, nil },
		Phases: []agent.Phase[cardState]{{Name: "work", Tools: []agent.Tool[cardState]{find, pay}, Moves: []agent.Move[cardState]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// Where the value of a sensitive field stands as a value of its own, people are not
// shown it: in a result before it is in the state, in arguments, in proposals, at
// gates, in an edit, in an answer, and in what a rollback would go back to. What
// decides, and what the tools and the journal have, is the value itself.
func TestMasked_WhereverItStands(t *testing.T) {
	const number, iban = "4111 1111 1111", "DE02120300000000202051"
	tr := begin(t, cardAgent(), `{"customer_id":"c-1"}`)
	tr.message("pay by card, or from " + iban)
	tr.model(`find {"customer_id":"c-1"}`, `set_fields {"fields":{"iban":"`+iban+`"},"quote":"from `+iban+`"}`)
	tr.done("1.1", `{"cards":[{"number":"`+number+`","month":3}],"open":true}`)
	tr.model(`pay {"number":"` + number + `","notes":{"a/b~c":"` + iban + `","month":"3"}}`)
	gate := tr.gate("2.1")
	tr.by(agent.Principal{Subject: "kim", Roles: []string{"boss"}}, "2.1", agent.Verdict{Verdict: agent.Edit, Reason: "another note", Args: agent.JSON(`{"number":"` + number + `","notes":{}}`)})
	tr.message("stop")

	run := tr.m.Run()
	require.Contains(t, gate.Args.String(), number)
	require.Contains(t, gate.Shown["card"].String(), number, "who decides is shown it")
	require.Contains(t, run.Steps[1].Args.String(), number, "the run itself stays")
	shown, err := json.Marshal(run.Masked())
	require.NoError(t, err)
	require.NotContains(t, string(shown), number)
	require.NotContains(t, string(shown), iban)
	require.JSONEq(t, `{"cards":[{"number":"(masked)","month":3}],"open":true}`, run.Masked().Steps[0].Result.String(), "what many values equal by accident is not taken for it")
	require.JSONEq(t, `{"number":"(masked)","notes":{"a/b~c":"(masked)","month":"3"}}`, run.Masked().Steps[1].Args.String())
	kinds := map[agent.EventType]bool{}
	for _, e := range tr.m.Batch().Events {
		text := agent.Redacted(run.Redaction(), e).Data.String()
		require.NotContains(t, text, number, e.Type)
		require.NotContains(t, text, iban, e.Type)
		kinds[e.Type] = kinds[e.Type] || text != e.Data.String()
	}
	for _, masked := range []agent.EventType{agent.EventStateSet, agent.EventProposal, agent.EventStepDone, agent.EventStepStarted, agent.EventGateOpened, agent.EventVerdict} {
		require.True(t, kinds[masked], masked)
	}
	tr.reduces()
}

// What is redacted takes time by what there is, and not by one times the other: 5,500
// sensitive texts and a result of 14 KB took 6.9 s in one Step.
func TestRedaction_LinearTime(t *testing.T) {
	list := make([]string, 5500)
	for i := range list {
		list[i] = fmt.Sprintf("a%09d", i*7919)
	}
	all, err := json.Marshal(list)
	require.NoError(t, err)
	run := &agent.Run{Sensitive: []string{"all"}, State: agent.JSON(`{"all":` + string(all) + `}`)}
	text := strings.Repeat("aaaa000000001 ", 1000) + list[77]
	began := time.Now()
	redacted := run.Redaction().Text(text)
	require.Less(t, time.Since(began), 500*time.Millisecond)
	require.True(t, strings.HasSuffix(redacted, "(masked)"))
	worst := &agent.Run{Sensitive: []string{"all"}, State: agent.JSON(`{"all":"` + strings.Repeat("a", 60_000) + `b"}`)}
	began = time.Now()
	require.Len(t, worst.Redaction().Text(strings.Repeat("a", 60_000)), 60_000)
	require.Less(t, time.Since(began), 500*time.Millisecond)
}

// A value is found in the forms that it takes in texts.
func TestRedaction_Forms(t *testing.T) {
	run := &agent.Run{Sensitive: []string{"name", "card", "sum", "money", "short"}, State: agent.JSON(
		`{"card":"4111 1111 1111","money":{"currency":"EUR","minor":500000},"name":"Zoë \"Zed\" <z@x.org>","short":"abc","sum":89.9}`)}
	x := run.Redaction()
	for _, text := range []string{"4111-1111-1111", "411111111111", `zoë "zed" <Z@X.ORG>`, `Zoë \"Zed\" <z@x.org>`, `Zo\u00eb \"Zed\" <z@x.org>`,
		`Zoë \"Zed\" \u003cz@x.org\u003e`, "89.90", "5,000 EUR", "5000.00", "it was 4111 1111 1111, Zoë \"Zed\" <z@x.org>", "card 4111 11 …(cut)"} {
		require.Contains(t, x.Text(text), "(masked)", text)
	}
	require.Equal(t, "pay (masked) now", x.Text("pay 4111 1111 1111 now"))
	require.Equal(t, "abc and EUR stay: a short value in a text would be told by what is hidden", x.Text("abc and EUR stay: a short value in a text would be told by what is hidden"))
	require.JSONEq(t, `{"short":"(masked)","n":"(masked)","o":1,"(masked)":true}`, x.JSON(agent.JSON(`{"411111111111":true,"n":500000,"o":1,"short":"abc"}`)).String())
}

// What a field held before is hidden as what it holds now; beyond what a run remembers of
// that, all is.
func TestRedaction_EarlierValues(t *testing.T) {
	tr := begin(t, cardAgent(), `{"customer_id":"c-1"}`)
	n := 0
	set := func(iban string) {
		n++
		_, r := tr.m.Step(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), "", agent.AmendRun{ID: fmt.Sprint("amend-", n), Principal: agent.Principal{Subject: "ops"}, Reason: "x", Fields: agent.JSON(`{"iban":"` + iban + `"}`)})
		require.Equal(t, agent.Accepted, r.Status, r.Reason)
	}
	set("DE02120300000000202051")
	set("FR1420041010050500013M02606")
	_, r := tr.m.Step(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), "", agent.Message{ID: "m", Principal: agent.Principal{Subject: "u"}, Text: "was it DE02120300000000202051?"})
	require.Equal(t, agent.Accepted, r.Status, r.Reason)
	shown, err := json.Marshal(tr.m.Run().Masked())
	require.NoError(t, err)
	require.NotContains(t, string(shown), "DE0212")
	require.Equal(t, "(masked) or (masked)", tr.m.Run().Redaction().Text("DE02120300000000202051 or FR1420041010050500013M02606"))
	for i := range 20 {
		set(fmt.Sprint(i, strings.Repeat("x", 1000)))
	}
	require.Equal(t, "(masked)", tr.m.Run().Redaction().Text("whatever"), "what cannot be remembered might stand anywhere")
}

type guest struct {
	Name     string `json:"name"`
	Passport string `json:"passport" sensitive:"true" view:"-"`
}
type guests struct {
	List []guest          `json:"list" set:"tool"`
	Of   map[string]guest `json:"of"   set:"tool"`
}
type lookedUp struct {
	Raw   string `json:"raw"`
	Guest guest  `json:"guest"`
}

func guestAgent() *agent.Definition {
	look := tool.ReadOnly("look", none[start, lookedUp], func(s *guests, _ start, r lookedUp) error {
		s.List, s.Of = []guest{r.Guest}, map[string]guest{"first": r.Guest}
		return nil
	})
	return agent.Define(agent.Spec[start, guests]{Name: "guest", Version: 1, Instructions: "Look.", Init: func(start) (guests, error) { return guests{}, nil },
		Phases: []agent.Phase[guests]{{Name: "work", Tools: []agent.Tool[guests]{look}, Moves: []agent.Move[guests]{{To: "end"}}}, {Name: "end", Final: true}}})
}

// Tags within a field count: people are not shown what they name, and the model is not
// shown it in the state, nor in a tool's raw result.
func TestRedaction_NestedAndHiddenFromTheModel(t *testing.T) {
	def := guestAgent()
	require.NoError(t, def.Err())
	tr := begin(t, def, `{"customer_id":"c-1"}`)
	require.Equal(t, []string{"list.passport", "of.*.passport"}, tr.m.Run().Sensitive)
	tr.message("look")
	tr.model(`look {"customer_id":"c-1"}`)
	tr.done("1.1", `{"raw":"passport=X1234567;","guest":{"name":"Zoe","passport":"X1234567"}}`)
	run := tr.m.Run()
	require.Contains(t, run.State.String(), "X1234567")
	shown, err := json.Marshal(run.Masked())
	require.NoError(t, err)
	require.NotContains(t, string(shown), "X1234567")
	require.Contains(t, string(shown), "Zoe")
	view, err := agent.ViewAt(tr.m.Batch().Events, 2)
	require.NoError(t, err)
	require.JSONEq(t, `{"list":[{"name":"Zoe"}],"of":{"first":{"name":"Zoe"}}}`, view.State.String())
	model, err := json.Marshal(view)
	require.NoError(t, err)
	require.NotContains(t, string(model), "X1234567")
	require.Contains(t, string(model), "passport=(masked);")
}

type ownJSON struct {
	Secret string `json:"secret" sensitive:"true"`
}

func (o ownJSON) MarshalText() ([]byte, error)  { return []byte(o.Secret), nil }
func (o *ownJSON) UnmarshalText(b []byte) error { o.Secret = string(b); return nil }

type wrongTags struct {
	Model guest   `json:"model" set:"model"`
	Own   ownJSON `json:"own"   set:"tool"`
	Typo  struct {
		X string `json:"x" sensitive:"yes"`
	} `json:"typo" set:"tool"`
}
type taggedStart struct {
	CustomerID string `json:"customer_id" sensitive:"true"`
}

// A tag that could not be kept is a mistake that names its field, and never ignored.
func TestRedaction_TagsThatCannotBeKept(t *testing.T) {
	err := agent.Define(agent.Spec[taggedStart, wrongTags]{Name: "wrong", Version: 1, Instructions: "x", Init: func(taggedStart) (wrongTags, error) { return wrongTags{}, nil },
		Phases: []agent.Phase[wrongTags]{{Name: "end", Final: true}}}).Err()
	for _, says := range []string{"state.Model.Passport: the model sets the field model as a whole", "state.Own.Secret: its tag would be ignored",
		`state.Typo.X: tag sensitive:"yes" means nothing`, "start input.CustomerID: tag sensitive:\"true\" means nothing here"} {
		require.ErrorContains(t, err, says)
	}
}

// Whoever follows an answer that comes in pieces is shown none of a value that stands in
// several of them.
func TestRedaction_Pieces(t *testing.T) {
	x := (&agent.Run{Sensitive: []string{"card"}, State: agent.JSON(`{"card":"4111 1111 1111"}`)}).Redaction()
	text, shown := "", ""
	for _, piece := range []string{"Your card 41", "11 11", "11-11", "11 is", " charged. 4", "2"} {
		text += piece
		now := x.Settled(text)
		require.True(t, strings.HasPrefix(now, shown), "%q goes on as %q", shown, now)
		require.NotContains(t, now, "41")
		shown = now
	}
	require.Equal(t, "Your card (masked) is charged. 42", shown)
}

type line struct {
	Args agent.JSON
	Text string
}

// What is embedded without being exported is redacted as all else.
func TestRedaction_Embedded(t *testing.T) {
	x := (&agent.Run{Sensitive: []string{"card"}, State: agent.JSON(`{"card":"4111 1111 1111"}`)}).Redaction()
	whole := struct{ line }{line{agent.JSON(`"4111 1111 1111"`), "4111 1111 1111"}}
	require.Equal(t, struct{ line }{line{agent.JSON(`"(masked)"`), "(masked)"}}, agent.Redacted(x, whole))
	require.Equal(t, "4111 1111 1111", whole.Text)
}
