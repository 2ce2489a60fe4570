package agent_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// garbage is a whole run that is fed with one text from everybody: model, user, tool
// and whoever sends signals. It goes on, and its journal is the run.
func garbage(t *testing.T, text string) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	any := agent.JSON(`null`)
	if j, err := agent.Canonical([]byte(text)); err == nil && len(j) < 60<<10 {
		any = j
	}
	who := agent.Principal{Subject: text}
	for range 2 {
		tr.message("go")
		tr.message(text)
		tools := []string{text, "deep", agent.CallSetFields, agent.CallMove, agent.CallFinish + "x", "pay"}
		in := agent.Proposed{Turn: tr.m.Run().Turn, Finish: agent.FinishReason(text), Model: text, Instructions: text, Text: text}
		for _, tool := range tools {
			in.Calls = append(in.Calls, agent.RawCall{ProviderID: text, Tool: tool, Args: text}, agent.RawCall{Tool: tool, Args: `{"n":1,"map":{"x":` + text + `}}`})
		}
		tr.step(in)
		for id := range tr.m.Run().Steps {
			tr.step(agent.StepFinished{Step: tr.m.Run().Steps[id].ID, Result: any})
		}
		tr.step(agent.StepFinished{Step: text, Result: any})
		tr.step(agent.StepUnknown{Step: text, Reason: text})
		tr.step(agent.Malformed{Name: text, Reason: text})
		tr.step(agent.VerdictGiven{Verdict: agent.Verdict{ID: text, Gate: text, Digest: text, Verdict: agent.VerdictValue(text), Reason: text, Args: any, Principal: who}})
		tr.step(agent.AmendRun{ID: "a" + text, Principal: who, Fields: any, Reason: text})
		tr.step(agent.PauseRun{ID: "p" + text, Principal: who, Reason: text})
		tr.step(agent.ResumeRun{ID: "r" + text, Principal: who, Reason: text})
		tr.step(agent.UndoSteps{ID: "u" + text, Principal: who, Steps: []string{text}, Reason: text})
		tr.step(agent.ProposalFailed{Turn: tr.m.Run().Turn, Reason: text})
	}
	for _, e := range tr.m.Batch().Events {
		require.True(t, utf8.Valid(e.Data), "%s", e.Data)
		again, err := agent.Encode(e.Data)
		require.NoError(t, err)
		require.Equal(t, e.Data, again)
	}
	tr.reduces()
}

var garbageSeeds = []string{"", " ", "\x00", "a\x00b", "\xff", "0.1e-400", strings.Repeat("7", 500) + ".5", `{"a":1,"A":2}`, `{"a":`,
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 300), `{"amount":1e400}`, `{"fields":{"x":"\u0000"},"quote":"."}`, strings.Repeat("é", 5000)}

// Nothing that anybody writes blocks a run. Before, a U+0000 in a finish reason did.
func TestRun_TakesGarbageFromEverybody(t *testing.T) {
	for _, text := range garbageSeeds {
		garbage(t, text)
	}
}

func FuzzRun_TakesGarbageFromEverybody(f *testing.F) {
	for _, text := range garbageSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { garbage(t, text) })
}

// A call longer than its limit is refused by its length alone.
func TestProposal_TooLongToBeRead(t *testing.T) {
	tr := begin(t, bankAgent(tellers), `{"customer_id":"c"}`)
	tr.message("go")
	tr.model(`deep {"n":1,"s":"` + strings.Repeat("x", 256<<10) + `"}`)
	require.Contains(t, tr.answer("c1_1").Text, "the limit is 262144")
	tr.reduces()
}
