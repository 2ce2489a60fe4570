package access_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api/access"
)

const run = "acme/refund/t-1"

func who(may ...access.Role) access.Caller {
	return access.Caller{Subject: "ann", Tenant: "acme", May: may, Roles: []string{"refunds"}, Auth: "static:ann"}
}

// Each row is a right that somebody could lose or get by a slip in the table.
func TestCheck(t *testing.T) {
	mine := access.On{Tenant: "acme", Run: run, User: "ann"}
	theirs := access.On{Tenant: "acme", Run: run, User: "bob"}
	gate := func(on access.On, kind agent.StepKind, v agent.VerdictValue, roles ...string) access.On {
		on.Gate = &access.OnGate{Kind: kind, Roles: roles, Verdict: v}
		return on
	}
	undo := func(on access.On, s agent.UndoScope) access.On { on.Undo = s; return on }
	as := func(on access.On, user string) access.On { on.AsUser = user; return on }
	for _, c := range []struct {
		name string
		role access.Role
		act  access.Act
		on   access.On
		want agent.Code // "": allowed
	}{
		{"a backend starts", access.Starter, access.Start, access.On{}, ""},
		{"a backend does not pause", access.Starter, access.Pause, theirs, agent.CodeDenied},
		{"a backend reads", access.Starter, access.RunGet, theirs, ""},
		{"a backend writes for the run's user", access.Starter, access.Message, as(theirs, "bob"), ""},
		{"and not for another", access.Starter, access.Message, as(theirs, "eve"), agent.CodeNotFound},
		{"a backend answers a question", access.Starter, access.Verdict, gate(as(theirs, "bob"), agent.KindAsk, agent.GiveAnswer), ""},
		{"and approves nothing", access.Starter, access.Verdict, gate(theirs, agent.KindTool, agent.Approve, "refunds"), agent.CodeDenied},
		{"a user starts nothing", access.User, access.Start, access.On{}, agent.CodeDenied},
		{"a user reads their run", access.User, access.RunGet, mine, ""},
		{"and no other", access.User, access.RunGet, theirs, agent.CodeNotFound},
		{"a user cancels their run", access.User, access.Cancel, mine, ""},
		{"with their turn", access.User, access.Cancel, undo(mine, agent.UndoTurn), ""},
		{"and not the whole run", access.User, access.Cancel, undo(mine, agent.UndoRun), agent.CodeDenied},
		{"a user answers", access.User, access.Verdict, gate(mine, agent.KindAsk, agent.GiveAnswer), ""},
		{"and approves nothing", access.User, access.Verdict, gate(mine, agent.KindTool, agent.Approve, "refunds"), agent.CodeDenied},
		{"a user does not approve a question", access.User, access.Verdict, gate(mine, agent.KindAsk, agent.Approve), agent.CodeDenied},
		{"a user sees no gate of others", access.User, access.GateGet, gate(mine, agent.KindTool, "", "refunds"), agent.CodeDenied},
		{"another's gate is not there", access.User, access.GateGet, gate(theirs, agent.KindAsk, ""), agent.CodeNotFound},
		{"a user is nobody else", access.User, access.Message, as(mine, "bob"), agent.CodeDenied},
		{"a user sees no context", access.User, access.RunContext, mine, agent.CodeDenied},
		{"a reviewer reads", access.Reviewer, access.RunExport, theirs, ""},
		{"a reviewer writes nothing", access.Reviewer, access.Message, theirs, agent.CodeDenied},
		{"a reviewer decides in their role", access.Reviewer, access.Verdict, gate(theirs, agent.KindTool, agent.Approve, "refunds"), ""},
		{"and in no other", access.Reviewer, access.Verdict, gate(theirs, agent.KindTool, agent.Approve, "finance"), agent.CodeDenied},
		{"nor for the user", access.Reviewer, access.Verdict, gate(theirs, agent.KindAsk, agent.GiveAnswer), agent.CodeDenied},
		{"a reviewer lifts", access.Reviewer, access.RulingLift, theirs, ""},
		{"a reviewer resolves no effect", access.Reviewer, access.EffectResolve, access.On{Tenant: "acme"}, agent.CodeDenied},
		{"an operator does all", access.Operator, access.Undo, theirs, ""},
		{"where the run judges the role", access.Operator, access.Verdict, gate(theirs, agent.KindDoubt, agent.Happened, "operator"), ""},
		{"of their tenant", access.Operator, access.RunGet, access.On{Tenant: "other", Run: "other/refund/t-1"}, agent.CodeNotFound},
		{"for nobody else", access.Operator, access.Message, as(theirs, "bob"), agent.CodeDenied},
		{"an act that is not there", access.Operator, "run.delete", access.On{}, agent.CodeDenied},
		{"who may nothing", "", access.RunGet, mine, agent.CodeDenied},
	} {
		t.Run(string(c.role)+"/"+c.name, func(t *testing.T) {
			err := access.Check(who(c.role), c.act, c.on)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, c.want, agent.ErrorCode(err), "%v", err)
			if c.want == agent.CodeNotFound {
				require.Equal(t, access.NotFound().Error(), err.Error())
			}
		})
	}
}

// Several roles add up; one that sees the thing makes a refusal a refusal.
func TestCheck_SeveralRoles(t *testing.T) {
	c := who(access.User, access.Reviewer)
	theirs := access.On{Tenant: "acme", Run: run, User: "bob"}
	require.NoError(t, access.Check(c, access.RunGet, theirs))
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(access.Check(c, access.Message, theirs)))
}

// Whoever may do something somewhere is not told so before it is known where, and
// another tenant's things are not there, whatever the act.
func TestCheck_EveryAct(t *testing.T) {
	require.Len(t, access.Acts(), 23)
	for _, act := range access.Acts() {
		require.NoError(t, access.Check(who(access.Operator), act, access.On{}), "%s: an operator may do everything", act)
		err := access.Check(who(access.Operator), act, access.On{Tenant: "other", Run: "other/refund/t-1", User: "ann"})
		require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "%s", act)
		require.Equal(t, agent.CodeDenied, agent.ErrorCode(access.Check(who(), act, access.On{})), "%s", act)
	}
}

func TestCaller_For(t *testing.T) {
	c := who(access.Starter)
	require.Equal(t, agent.Principal{Subject: "bob", Tenant: "acme", Auth: "static:ann for bob"}, c.For("bob"))
	require.Equal(t, agent.Principal{Subject: "ann", Tenant: "acme", Roles: []string{"refunds"}, Auth: "static:ann"}, c.For(""))
}
