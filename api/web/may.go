package web

import (
	"slices"
	"strings"

	"interlock/agent"
	"interlock/api/access"
)

// whyNot says why the caller cannot decide about a gate, "" where they can. The
// run judges it again: this is what spares a person a form that comes to nothing.
func whyNot(c access.Caller, g agent.Gate, on access.On) string {
	on.Gate = &access.OnGate{Kind: g.Kind, Roles: g.Roles}
	if g.Kind == agent.KindAsk {
		on.Gate.Verdict = agent.GiveAnswer
	}
	err := access.Check(c, access.Verdict, on)
	switch {
	case g.Status != agent.GateOpen:
		return "This gate is closed."
	case g.Pending != nil:
		return "A verdict has been given already, and waits to take effect. It can be decided anew where its person takes it back."
	case g.Kind == agent.KindAsk && on.User != c.Subject:
		return "This is a question to " + on.User + ", whom the run serves: only they can answer it."
	case g.Kind == agent.KindAsk:
		return deniedText(err)
	case !slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(c.Roles, r) }):
		return "Deciding needs role " + strings.Join(g.Roles, " or ") + ", and you have " + rolesOf(c) + "."
	case err != nil:
		return deniedText(err)
	case g.Distinct && slices.Contains(g.Askers, c.Subject):
		return "You are among those who asked for it: another person must decide."
	case approvedBy(g, c.Subject):
		return "You have approved it already: it needs another person."
	}
	return ""
}

func deniedText(err error) string {
	if err == nil {
		return ""
	}
	return "Your access token does not allow it: " + err.Error()
}

func approvedBy(g agent.Gate, subject string) bool {
	return slices.ContainsFunc(g.Approvals, func(a agent.Approval) bool { return a.By.Subject == subject })
}

func rolesOf(c access.Caller) string {
	if len(c.Roles) == 0 {
		return "none"
	}
	return strings.Join(c.Roles, ", ")
}

// concerns reports a gate that waits for the caller: one of their roles, or a step
// in doubt where they are an operator.
func concerns(c access.Caller, g agent.Gate) bool {
	if g.Kind == agent.KindAsk {
		return false // asked of one user, and found by their runs
	}
	return g.Kind == agent.KindDoubt && c.Is(access.Operator) ||
		slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(c.Roles, r) })
}
