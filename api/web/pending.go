package web

import (
	"interlock/agent"
	"interlock/api/access"
	"interlock/api/words"
)

// pendingView is a verdict that waits to take effect.
type pendingView struct {
	Who, Word string
	Reason    string
	At, Until moment
	Mine      bool // it is the caller's, who can take it back
}

// pending is nil where no verdict of a gate waits.
func (v *visit) pending(g agent.Gate) *pendingView {
	p := g.Pending
	if p == nil || g.Status != agent.GateOpen {
		return nil
	}
	on := access.On{Gate: &access.OnGate{Kind: g.Kind, Roles: g.Roles, Verdict: agent.TakeBack}}
	return &pendingView{Who: words.Principal(&p.By, p.Verified), Word: string(p.Verdict), Reason: p.Reason, At: v.moment(p.At), Until: v.moment(p.Until),
		Mine: p.By.Subject == v.caller.Subject && v.now.Before(p.Until) && access.Check(v.caller, access.Verdict, on) == nil}
}

// waits says in words how a verdict waits.
func waits(p agent.PendingVerdict) string {
	text := "decided by " + words.Principal(&p.By, p.Verified) + ": " + string(p.Verdict)
	if p.Reason != "" {
		text += " (" + p.Reason + ")"
	}
	return text + ", takes effect at " + words.Stamp(p.Until)
}

// putsOff reports a verdict that decides, and waits because its person may have
// second thoughts.
func putsOff(g agent.Gate, word agent.VerdictValue) bool {
	return g.TakeBack > 0 && (word != agent.Approve || len(g.Approvals)+1 >= max(g.Quorum, 1))
}
