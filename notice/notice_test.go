package notice

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

var update = flag.Bool("update", false, "add new names to testdata/kinds.golden")

var at = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func appended(t *testing.T, typ agent.EventType, data any) store.Appended {
	t.Helper()
	j, err := agent.Encode(data)
	require.NoError(t, err)
	return store.Appended{Chain: store.Chain{Tenant: "acme", Address: "acme/refund/k:1", FirstRunID: "r1"}, Place: "17",
		Event: agent.Event{Seq: 9, At: at, Type: typ, Tenant: "acme", Step: "3.1", Data: j}}
}

// What every event makes of itself. A new type of event must be decided about here.
func TestOf(t *testing.T) {
	until := at.Add(time.Hour)
	gate := agent.Gate{ID: "3.1-doubt", Step: "3.1", Title: "Refund 5 EUR to Ann", Roles: []string{"refunds"}, ExpiresAt: &until, Args: agent.JSON(`{"iban":"S3CR3T"}`)}
	type wants map[agent.EventType]struct {
		data any
		want *Notice
	}
	all := wants{
		agent.EventReply:         {agent.ReplyData{Text: "S3CR3T"}, &Notice{Kind: RunReplied}},
		agent.EventGateOpened:    {agent.GateOpenedData{Gate: gate}, &Notice{Kind: GateOpened, Gate: "3.1-doubt", Step: "3.1", Title: gate.Title, Roles: gate.Roles, Until: &until}},
		agent.EventGateEscalated: {agent.GateEscalatedData{Gate: "3.1", Roles: []string{"lead"}}, &Notice{Kind: GateEscalated, Gate: "3.1", Roles: []string{"lead"}}},
		agent.EventGateClosed: {agent.GateClosedData{Gate: "3.1", Status: agent.GateApproved, Verdict: agent.Approve, Reason: "S3CR3T", Verified: true, By: &agent.Principal{Subject: "ann"}},
			&Notice{Kind: GateClosed, Gate: "3.1", Status: agent.GateApproved, Verdict: agent.Approve, DecidedBy: "ann", Verified: true}},
		agent.EventCompleted:   {agent.EndedData{Reason: "S3CR3T"}, &Notice{Kind: RunEnded, RunStatus: agent.RunCompleted}},
		agent.EventCancelled:   {agent.EndedData{}, &Notice{Kind: RunEnded, RunStatus: agent.RunCancelled}},
		agent.EventFailed:      {agent.EndedData{}, &Notice{Kind: RunEnded, RunStatus: agent.RunFailed}},
		agent.EventStepSettled: {agent.StepSettledData{Status: agent.StepInDoubt, Reason: "S3CR3T"}, &Notice{Kind: StepInDoubt, Step: "3.1"}},
	}
	for _, none := range []agent.EventType{agent.EventStarted, agent.EventMessage, agent.EventTurnStarted, agent.EventTurnCut, agent.EventProposal,
		agent.EventCallAnswered, agent.EventStateSet, agent.EventConfirmed, agent.EventFactRecorded, agent.EventPhaseEntered, agent.EventStepStarted,
		agent.EventStepResumed, agent.EventStepDone, agent.EventCommitRefused, agent.EventGateCounted, agent.EventGatePending, agent.EventVerdict, agent.EventRulingMade,
		agent.EventRulingDrafted, agent.EventRulingConfirmed, agent.EventRulingLifted, agent.EventCancelRequested, agent.EventInputRefused,
		agent.EventTrimmed, agent.EventPaused, agent.EventResumed, agent.EventAmended, agent.EventUndoRequested, agent.EventSnapshotLoaded,
		agent.EventReminded, agent.EventInterrupted, agent.EventStepStopping, agent.EventStepBegun, agent.EventInterruptSettled} {
		require.NotContains(t, all, none)
		all[none] = struct {
			data any
			want *Notice
		}{struct{}{}, nil}
	}
	for _, typ := range constants(t, "../agent/event.go", "EventType") {
		c, decided := all[agent.EventType(typ)]
		require.True(t, decided, "does %q make a notice?", typ)
		n, ok := Of(appended(t, agent.EventType(typ), c.data))
		require.Equal(t, c.want != nil, ok, typ)
		require.Equal(t, ok, slices.Contains(Types, agent.EventType(typ)), "Types and Of differ about %q", typ)
		if !ok {
			continue
		}
		want := *c.want
		want.ID, want.At, want.Tenant, want.Agent, want.Key, want.Address, want.FirstRunID, want.Seq = n.ID, at, "acme", "refund", "k:1", "acme/refund/k:1", "r1", 9
		require.Equal(t, want, n)
		j, err := n.Encode()
		require.NoError(t, err)
		require.NotContains(t, j.String(), "S3CR3T")
		again, err := Decode(j)
		require.NoError(t, err)
		require.Equal(t, n, again)
	}
	for _, s := range []agent.StepStatus{agent.StepFailed, agent.StepRefused, agent.StepUndone} {
		_, ok := Of(appended(t, agent.EventStepSettled, agent.StepSettledData{Status: s}))
		require.False(t, ok, s)
	}
}

func TestOf_IDs(t *testing.T) {
	first := appended(t, agent.EventReply, agent.ReplyData{})
	n, _ := Of(first)
	require.Len(t, n.ID, 32)
	first.Superseded = true
	again, ok := Of(first)
	require.True(t, ok, "it was so")
	require.Equal(t, n, again)
	seen := map[string]bool{n.ID: true}
	for _, change := range []func(*store.Appended){
		func(a *store.Appended) { a.Tenant = "globex" }, func(a *store.Appended) { a.Address = "acme/refund/2" },
		func(a *store.Appended) { a.FirstRunID = "r2" }, func(a *store.Appended) { a.Place = "18" },
	} {
		other := first
		change(&other)
		n, _ := Of(other)
		require.False(t, seen[n.ID])
		seen[n.ID] = true
	}
}

func TestOf_UnreadableDataIsToldThin(t *testing.T) {
	a := appended(t, agent.EventGateOpened, []int{1})
	n, ok := Of(a)
	require.True(t, ok)
	require.Equal(t, []any{GateOpened, ""}, []any{n.Kind, n.Gate})
}

// Kinds are relied on by receivers: none may be renamed or removed.
func TestKindsStay(t *testing.T) {
	const path = "testdata/kinds.golden"
	now := append(constants(t, "notice.go", "Kind"), constants(t, "target.go", "Protocol")...)
	slices.Sort(now)
	golden, err := os.ReadFile(path)
	if *update && os.IsNotExist(err) {
		err = nil
	}
	require.NoError(t, err)
	for _, line := range strings.Fields(string(golden)) {
		require.Contains(t, now, line, "it is gone: never rename")
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(now, "\n")+"\n"), 0o644))
		return
	}
	require.Equal(t, strings.Join(now, "\n")+"\n", string(golden), "a new name: go test ./notice -update adds it")
	for _, kind := range constants(t, "notice.go", "Kind") {
		require.True(t, Kind(kind) == Test || slices.Contains(Kinds, Kind(kind)), kind)
	}
}

// constants are the values of the constants of a type in a file.
func constants(t *testing.T, file, typ string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(node ast.Node) bool {
		v, ok := node.(*ast.ValueSpec)
		if ok && len(v.Values) == 1 {
			if of, named := v.Type.(*ast.Ident); named && of.Name == typ {
				value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				values = append(values, value)
			}
		}
		return true
	})
	require.NotEmpty(t, values)
	return values
}

func TestWants(t *testing.T) {
	gate := Notice{Kind: GateOpened, Tenant: "acme", Agent: "refund", Roles: []string{"refunds", "lead"}}
	end := Notice{Kind: RunEnded, Tenant: "acme", Agent: "refund"}
	for _, c := range []struct {
		t         Target
		gate, end bool
	}{
		{Target{}, true, true},
		{Target{Kinds: []Kind{GateOpened, GateClosed}}, true, false},
		{Target{Tenants: []string{"globex", "acme"}}, true, true},
		{Target{Tenants: []string{"globex"}}, false, false},
		{Target{Agents: []string{"orders"}}, false, false},
		{Target{Roles: []string{"lead"}}, true, true},
		{Target{Roles: []string{"finance"}}, false, true},
		{Target{Roles: []string{"finance"}, Kinds: []Kind{GateOpened}}, false, false},
	} {
		require.Equal(t, []bool{c.gate, c.end}, []bool{c.t.Wants(gate), c.t.Wants(end)}, "%+v", struct{ K, T, A, R any }{c.t.Kinds, c.t.Tenants, c.t.Agents, c.t.Roles})
	}
	gate.Title = "to Ann"
	require.Empty(t, Target{}.Cut(gate).Title)
	require.Equal(t, "to Ann", Target{Titles: true}.Cut(gate).Title)
}

func TestLink(t *testing.T) {
	n := Notice{Kind: GateOpened, Agent: "refund", Key: "a:b+c@d", Gate: "3.1"}
	require.Equal(t, "https://x.example/p/runs/refund/a:b+c@d/gates/3.1", Link("https://x.example/p/", n))
	n.Gate = "../../x?y#z"
	require.Equal(t, "https://x.example/runs/refund/a:b+c@d/gates/..%2F..%2Fx%3Fy%23z", Link("https://x.example", n))
	n.Gate = ""
	require.Equal(t, "https://x.example/runs/refund/a:b+c@d", Link("https://x.example", n))
	require.Empty(t, Link("", n))
	require.Empty(t, Link("https://x.example", Notice{Kind: Test, Agent: "a"}))
}

func TestSlackBody(t *testing.T) {
	n := Notice{Kind: GateOpened, Address: "acme/refund/k", Gate: "3.1", Roles: []string{"<!channel>", "a&b"}, Title: "Pay <https://evil.example|here>\n*now*"}
	body, err := slackBody(n, "https://x.example/runs/refund/k/gates/3.1")
	require.NoError(t, err)
	var got struct {
		Text   string
		Blocks []struct {
			Type      string
			Text      struct{ Type, Text string }
			Accessory struct {
				Type, URL string
				Action    string `json:"action_id"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, "acme/refund/k waits at gate 3.1 for roles &lt;!channel&gt;, a&amp;b", got.Text)
	require.Len(t, got.Blocks, 1)
	require.Equal(t, got.Text+"\nPay &lt;https://evil.example|here&gt; *now*", got.Blocks[0].Text.Text)
	require.Equal(t, []string{"section", "mrkdwn", "button", "https://x.example/runs/refund/k/gates/3.1", ""},
		[]string{got.Blocks[0].Type, got.Blocks[0].Text.Type, got.Blocks[0].Accessory.Type, got.Blocks[0].Accessory.URL, got.Blocks[0].Accessory.Action})
	body, err = slackBody(n, "")
	require.NoError(t, err)
	require.NotContains(t, string(body), "accessory")
	n.Roles = []string{strings.Repeat("é", 10_000)}
	body, err = slackBody(n, "")
	require.NoError(t, err)
	require.Less(t, len(body), 3000)
}

func TestHeadlines(t *testing.T) {
	for want, n := range map[string]Notice{
		"a/b/c has replied":                                                         {Kind: RunReplied},
		"a/b/c waits at gate 1.1 for its user":                                      {Kind: GateOpened, Gate: "1.1"},
		"gate 1.1 of a/b/c is still open: role x may decide it, too":                {Kind: GateEscalated, Gate: "1.1", Roles: []string{"x"}},
		"gate 1.1 of a/b/c is expired":                                              {Kind: GateClosed, Gate: "1.1", Status: agent.GateExpired},
		"gate 1.1 of a/b/c is rejected by ann (unverified)":                         {Kind: GateClosed, Gate: "1.1", Status: agent.GateRejected, DecidedBy: "ann"},
		"a/b/c is failed":                                                           {Kind: RunEnded, RunStatus: agent.RunFailed},
		"step 1.1 of a/b/c is in doubt: somebody must find out whether it happened": {Kind: StepInDoubt, Step: "1.1"},
		"a/b/c: run.sang":                                                           {Kind: "run.sang"},
	} {
		n.Address = "a/b/c"
		require.Equal(t, want, headline(n))
	}
}
