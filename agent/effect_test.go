package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

type kept struct {
	ID   int64             `json:"id"`
	Note *string           `json:"note,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	Rate *int64            `json:"rate"` // null says something
}

// keeper has one Keyed tool and one that is Once.
func keeper() *agent.Definition {
	keep := tool.Keyed("keep", keyed[kept, sent], func(s *state, _ kept, m sent) error { s.ReceiptID = m.ID; return nil })
	other := tool.Once("other", none[kept, sent], func(s *state, _ kept, m sent) error { s.ReceiptID = m.ID; return nil })
	return agent.Define(agent.Spec[start, state]{Name: "keeper", Version: 1, Instructions: "Keep.",
		Init: func(in start) (state, error) { return state{CustomerID: in.CustomerID}, nil },
		Phases: []agent.Phase[state]{{Name: "work", Tools: []agent.Tool[state]{keep, other}, Moves: []agent.Move[state]{{To: "end"}}},
			{Name: "end", Final: true}}})
}

// Which calls are the same effect: those whose arguments are equal as JSON of the
// tool's type, however a model has written them.
func TestEffect_SameArguments(t *testing.T) {
	const base = `{"id":1,"rate":null}`
	for name, c := range map[string]struct {
		first, second string
		same          bool
	}{
		"the same":                    {base, base, true},
		"another order of keys":       {`{"id":1,"note":"a","rate":null}`, `{"rate":null,"note":"a","id":1}`, true},
		"order of keys, nested":       {`{"id":1,"rate":null,"tags":{"a":"1","b":"2"}}`, `{"id":1,"rate":null,"tags":{"b":"2","a":"1"}}`, true},
		"space and escapes":           {`{"id":1,"note":"a","rate":null}`, "{ \"id\" : 1,\n \"note\":\"\\u0061\", \"rate\":null }", true},
		"1 and 1.0":                   {base, `{"id":1.0,"rate":null}`, true},
		"1 and 1e0":                   {base, `{"id":1e0,"rate":null}`, true},
		"1 and 10":                    {base, `{"id":10,"rate":null}`, false},
		"2^53 and 2^53+1":             {`{"id":9007199254740992,"rate":null}`, `{"id":9007199254740993,"rate":null}`, false},
		"2^53+1 and 2^53+1.0":         {`{"id":9007199254740993,"rate":null}`, `{"id":9007199254740993.0,"rate":null}`, true},
		"absent and null, left out":   {base, `{"id":1,"note":null,"rate":null}`, true},
		"absent and empty":            {base, `{"id":1,"note":"","rate":null}`, false},
		"null and 0 where null tells": {base, `{"id":1,"rate":0}`, false},
		"another case of a text":      {`{"id":1,"note":"a","rate":null}`, `{"id":1,"note":"A","rate":null}`, false},
		"composed and decomposed":     {`{"id":1,"note":"é","rate":null}`, `{"id":1,"note":"e\u0301","rate":null}`, false},
	} {
		key := func(args string) string {
			tr := begin(t, keeper(), `{"customer_id":"c"}`)
			tr.message("go")
			tr.model("keep " + args)
			require.NotEmpty(t, tr.cmds, "%s: %s", name, lastCall(tr).Text)
			run, ok := tr.cmds[len(tr.cmds)-1].(agent.RunStep)
			require.True(t, ok, "%s: %s", name, lastCall(tr).Text)
			return run.Task.Key
		}
		require.Equal(t, c.same, key(c.first) == key(c.second), name)
	}
}

// What a call is, after an equal one: the same effect, which stands or is tried
// again, or a new one.
func TestEffect_AfterAnEarlierCall(t *testing.T) {
	for name, c := range map[string]struct {
		ends   func(tr *trial)
		stands bool // the second call is given the first one's result
		fresh  bool // it is a new effect
	}{
		"it stands":                {func(tr *trial) { tr.done("1.1", `{"id":"m"}`) }, true, false},
		"its result was not taken": {func(tr *trial) { tr.step(agent.StepFinished{Step: "1.1", Unkept: "too large"}) }, true, false},
		"it did not happen":        {func(tr *trial) { tr.step(agent.StepNotApplied{Step: "1.1", Reason: "down"}) }, false, false},
		"it was declined for good": {func(tr *trial) { tr.step(agent.StepNotApplied{Step: "1.1", Reason: "card declined", ForGood: true}) }, false, true},
		"it is undone": {func(tr *trial) {
			tr.step(agent.StepNotApplied{Step: "1.1", Reason: "it happened and was undone (by effect u); call it again to do it anew", ForGood: true})
		}, false, true},
	} {
		tr := begin(t, keeper(), `{"customer_id":"c"}`)
		tr.message("go")
		tr.model(`keep {"id":1,"rate":null}`)
		first := tr.cmds[len(tr.cmds)-1].(agent.RunStep).Task
		c.ends(tr)
		tr.model(`keep {"rate":null,"id":1.0}`)
		if c.stands {
			require.Contains(t, lastCall(tr).Text, "this happened already, as step 1.1; it was not done again", name)
			require.Len(t, tr.m.Run().Steps, 1, name)
			continue
		}
		second, ok := tr.cmds[len(tr.cmds)-1].(agent.RunStep)
		require.True(t, ok, "%s: %s", name, lastCall(tr).Text)
		require.Equal(t, c.fresh, first.Key != second.Task.Key, name)
		require.Equal(t, map[bool]int{true: 1}[c.fresh], second.Task.Ordinal, name)
	}
}

// lastCall is the only call of the last proposal, with its answer.
func lastCall(tr *trial) agent.ProposedCall {
	turns := tr.m.Run().Turns
	i := len(turns) - 1
	for turns[i].Proposal == nil {
		i--
	}
	return turns[i].Proposal.Calls[0]
}
