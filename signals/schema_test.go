package signals_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
)

var update = flag.Bool("update", false, "write schemas/ and testdata/ anew")

// schemas are the JSON Schemas that other languages read. What is sent to a run
// is closed: a member that it does not know is refused. What a run answers is
// open: a later version may add members.
var schemas = map[string]struct {
	schema agent.JSON
	title  string
	doc    string
	answer bool
}{
	"start":          {signals.Starts.Schema(), "Start input", "The one argument of every run's workflow. The workflow type is the agent's name, the workflow id is <tenant>/<agent>/<key>.", false},
	"message":        {signals.Messages.Schema(), "Message", "Payload of the signal and of the update named message: what the user says. policy is what it does while the run is busy: queue, reject, interrupt or rollback; none: the agent's own.", false},
	"cancel":         {signals.Cancels.Schema(), "Cancel", "Payload of the signal and of the update named cancel: ends the run once its running steps have ended. undo is what is undone before: none, turn or run.", false},
	"verdict":        {signals.Verdicts.Schema(), "Verdict", "Payload of the signal and of the update named verdict: a person's decision about one gate as it was shown. verdict is approve, reject, return or edit, the last three with a reason, and an edit with the new arguments, whole; of a question it is answer, with the answer; of a step in doubt it is happened, with a result, or did_not_happen, each with the reason.", false},
	"amend":          {signals.Amends.Schema(), "Amend", "Payload of the signal and of the update named amend: sets fields of the state from outside. fields is an object of new values; null sets a field's zero value.", false},
	"pause":          {signals.Pauses.Schema(), "Pause", "Payload of the signal and of the update named pause: nothing new starts until the run is resumed.", false},
	"resume":         {signals.Resumes.Schema(), "Resume", "Payload of the signal and of the update named resume: lets a paused run go on.", false},
	"undo":           {signals.Undos.Schema(), "Undo", "Payload of the signal and of the update named undo: asks that steps which happened be undone, one after the other, the last first.", false},
	"lift_ruling":    {signals.LiftRulings.Schema(), "Lift a ruling", "Payload of the signal and of the update named lift_ruling: ends a reviewer's remembered refusal, or drops the draft of one.", false},
	"confirm_ruling": {signals.ConfirmRulings.Schema(), "Confirm a ruling", "Payload of the signal and of the update named confirm_ruling: makes the draft of a ruling, which the model proposed, binding.", false},
	"wait":           {signals.Waits.Schema(), "Wait", "Payload of the update named wait, which answers with news when something stands after event after_seq.", false},
	"news":           {agent.NewDecoder[signals.News]().Schema(), "News", "What the update named wait answers. again: nothing new yet, ask again.", true},
	"receipt":        {agent.NewDecoder[agent.Receipt]().Schema(), "Receipt", "What every update answers.", true},
	"run":            {agent.NewDecoder[agent.Run]().Schema(), "Run", "What the query named run answers: the run as of its last completed task.", true},
	"waiting":        {agent.NewDecoder[agent.Waiting]().Schema(), "Waiting", "One member of what the query named waiting answers, a list: what the run waits for, since when, until when and for whom.", true},
	"end":            {agent.NewDecoder[signals.End]().Schema(), "End", "The result of a run's workflow.", true},
}

func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	files, err := filepath.Glob("schemas/*.json")
	require.NoError(t, err)
	if !*update {
		require.Len(t, files, len(schemas))
	}
	for name, s := range schemas {
		var v map[string]any
		require.NoError(t, json.Unmarshal(s.schema, &v))
		plain(v, s.answer)
		v["$schema"], v["title"], v["description"] = "https://json-schema.org/draft/2020-12/schema", s.title, s.doc
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(v))
		want := b.Bytes()
		path := filepath.Join("schemas", name+".json")
		if *update {
			require.NoError(t, os.WriteFile(path, want, 0o644))
		}
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "%s is not the schema of its Go type; go test ./signals -update writes it anew", path)
	}
}

// plain writes "no other members" as false, which every reader knows, and drops
// it where members may come.
func plain(v any, open bool) {
	switch v := v.(type) {
	case map[string]any:
		if other, is := v["additionalProperties"].(map[string]any); is && len(other) == 1 && other["not"] != nil {
			v["additionalProperties"] = false
		}
		if open && v["additionalProperties"] == false {
			delete(v, "additionalProperties")
		}
		for _, e := range v {
			plain(e, open)
		}
	case []any:
		for _, e := range v {
			plain(e, open)
		}
	}
}

// What the types write is what their decoders read.
func TestPayloadsRoundTrip(t *testing.T) {
	who := agent.Principal{Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme", Auth: "oidc"}
	message := signals.Message{ID: "m-1", Principal: who, Text: "refund 1042", TraceID: "t-1"}
	roundTrip(t, signals.Starts, signals.Start{ID: "s-1", Agent: "refund", Version: 2, Tenant: "acme", Key: "k-1", Principal: who, User: "c-7",
		Body: agent.JSON(`{"customer_id":"c-7"}`), Message: &message, TraceID: "t-1"})
	roundTrip(t, signals.Messages, message)
	roundTrip(t, signals.Cancels, signals.Cancel{ID: "c-1", Principal: who, Reason: "enough", TraceID: "t-1"})
	roundTrip(t, signals.Amends, signals.Amend{ID: "a-1", Principal: who, Fields: agent.JSON(`{"order_id":"1043"}`), Reason: "the customer rang", TraceID: "t-1"})
	roundTrip(t, signals.Pauses, signals.Pause{ID: "p-1", Principal: who, Reason: "a look", TraceID: "t-1"})
	roundTrip(t, signals.Resumes, signals.Resume{ID: "r-1", Principal: who, Reason: "go on", TraceID: "t-1"})
	roundTrip(t, signals.Undos, signals.Undo{ID: "u-1", Principal: who, Steps: []string{"3.1"}, Reason: "wrong order", TraceID: "t-1"})
	roundTrip(t, signals.Starts, signals.Start{Agent: "refund", Version: 2, Tenant: "acme", Key: "k-1+undo-1", Principal: who,
		Repair: &agent.Repair{Address: "acme/refund/k-1", FirstRunID: "r", Scope: "acme/refund/k-1/r", Turn: 4, ID: "u-1", Reason: "wrong order", State: agent.JSON(`{}`),
			Ordinals: map[string]int{"e": 1}, Steps: []agent.RepairStep{{ID: "3.1", Tool: "pay", Compensation: "unpay", Args: agent.JSON(`{}`), Result: agent.JSON(`{}`), Key: "k", Effect: "e", Ordinal: 1, Turn: 3, Seq: 30}}}})
	roundTrip(t, signals.LiftRulings, signals.LiftRuling{ID: "l-1", Ruling: "3.1", Principal: who, Reason: "a photo came", TraceID: "t-1"})
	roundTrip(t, signals.ConfirmRulings, signals.ConfirmRuling{ID: "l-1", Ruling: "draft-c3_1", Principal: who, Reason: "right", TraceID: "t-1"})
	yes := true
	roundTrip(t, signals.Verdicts, signals.Verdict{ID: "v-2", Gate: "2.1", Digest: "d", Verdict: agent.GiveAnswer, Principal: who,
		Answer: &agent.Answer{Confirm: &yes, Fields: agent.JSON(`{"order_id":"1042"}`)}})
	roundTrip(t, signals.Verdicts, signals.Verdict{ID: "v-3", Gate: "3.1", Digest: "d", Verdict: agent.Edit, Args: agent.JSON(`{"n":9007199254740993}`), Reason: "typo", Principal: who})
	roundTrip(t, signals.Waits, signals.Wait{AfterSeq: 12})
	roundTrip(t, signals.Verdicts, signals.Verdict{ID: "v-1", Gate: "3.1", Digest: "d", Verdict: agent.Reject, Reason: "no photo", Principal: who, TraceID: "t-1"})
}

func roundTrip[T any](t *testing.T, d agent.Decoder[T], v T) {
	t.Helper()
	j, err := agent.Encode(v)
	require.NoError(t, err)
	got, err := d.Decode(j)
	require.NoError(t, err)
	require.Equal(t, v, got)
}
