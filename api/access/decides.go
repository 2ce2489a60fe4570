package access

import (
	"slices"

	"interlock/agent"
)

// Decides reports whether the caller is one of those who decide about an open gate, and
// so is shown it whole; whoever else may look at it sees it redacted.
func Decides(c Caller, g agent.Gate, on On) bool {
	on.Gate = &OnGate{Kind: g.Kind, Roles: g.Roles}
	if g.Kind == agent.KindAsk {
		on.Gate.Verdict = agent.GiveAnswer
	}
	switch {
	case g.Status != agent.GateOpen || Check(c, Verdict, on) != nil:
		return false
	case g.Kind == agent.KindAsk:
		return on.User == c.Subject
	}
	return slices.ContainsFunc(g.Roles, func(r string) bool { return slices.Contains(c.Roles, r) }) && !(g.Distinct && slices.Contains(g.Askers, c.Subject))
}
