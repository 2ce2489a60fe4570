package access

import (
	"fmt"
	"slices"

	"interlock/agent"
)

// Act is what a caller asks for. The names stand in audit lines; never rename.
type Act string

const (
	Start         Act = "start"
	Converse      Act = "converse"
	RunList       Act = "run.list"
	RunGet        Act = "run.get"
	RunWhy        Act = "run.why" // with the errors that hold it up
	RunEvents     Act = "run.events"
	RunContext    Act = "run.context"
	RunExport     Act = "run.export"
	Message       Act = "message"
	Cancel        Act = "cancel"
	Amend         Act = "amend"
	Pause         Act = "pause"
	Resume        Act = "resume"
	Undo          Act = "undo"
	GateList      Act = "gate.list"
	GateGet       Act = "gate.get"
	Verdict       Act = "verdict"
	RulingList    Act = "ruling.list"
	RulingLift    Act = "ruling.lift"
	RulingConfirm Act = "ruling.confirm"
	EffectList    Act = "effect.list"
	EffectResolve Act = "effect.resolve"
	Ops           Act = "ops" // what is about many runs: resume all, holds, sweeps
)

// On is what an act is about. What is not known yet is left empty: the zero On
// asks whether the caller may ever do it.
type On struct {
	Tenant string          // whose it is; "": the caller's own
	Run    string          // the run's address; "": a list, or what has no run
	User   string          // whom the run serves
	AsUser string          // on whose behalf a backend asks
	Gate   *OnGate         // gate.get, verdict
	Undo   agent.UndoScope // cancel
}

// OnGate is the gate that an act is about.
type OnGate struct {
	Kind    agent.StepKind
	Roles   []string
	Verdict agent.VerdictValue // verdict
}

// reach is how far a role may go with an act.
type reach func(c Caller, on On) bool

// tenant: all things of the tenant.
func tenant(Caller, On) bool { return true }

// own: what belongs to runs that serve the caller.
func own(c Caller, on On) bool { return on.Run == "" || on.User == c.Subject }

// ownCancel: their own run, without undoing what earlier turns did.
func ownCancel(c Caller, on On) bool {
	return own(c, on) && slices.Contains([]agent.UndoScope{"", agent.UndoNone, agent.UndoTurn}, on.Undo)
}

// question: a question that the agent asks its user.
func question(_ Caller, on On) bool {
	return on.Gate == nil || on.Gate.Kind == agent.KindAsk && (on.Gate.Verdict == "" || on.Gate.Verdict == agent.GiveAnswer)
}

func ownQuestion(c Caller, on On) bool { return own(c, on) && question(c, on) }

// byRole: a gate one of whose roles the caller has. Which role decides, and whether
// the person may at all, the run judges.
func byRole(c Caller, on On) bool {
	return on.Gate == nil || slices.ContainsFunc(on.Gate.Roles, func(r string) bool { return slices.Contains(c.Roles, r) })
}

// rules is the whole table. What stands nowhere is refused.
var rules = map[Act]map[Role]reach{
	Start:         {Starter: tenant, Operator: tenant},
	Converse:      {Starter: tenant, Operator: tenant},
	RunList:       {Starter: tenant, User: own, Reviewer: tenant, Operator: tenant},
	RunGet:        {Starter: tenant, User: own, Reviewer: tenant, Operator: tenant},
	RunWhy:        {Starter: tenant, Reviewer: tenant, Operator: tenant},
	RunEvents:     {Starter: tenant, User: own, Reviewer: tenant, Operator: tenant},
	RunContext:    {Starter: tenant, Reviewer: tenant, Operator: tenant},
	RunExport:     {Starter: tenant, Reviewer: tenant, Operator: tenant},
	Message:       {Starter: tenant, User: own, Operator: tenant},
	Cancel:        {Starter: tenant, User: ownCancel, Operator: tenant},
	Amend:         {Starter: tenant, Operator: tenant},
	Pause:         {Operator: tenant},
	Resume:        {Operator: tenant},
	Undo:          {Operator: tenant},
	GateList:      {Starter: tenant, Reviewer: tenant, Operator: tenant},
	GateGet:       {Starter: tenant, User: ownQuestion, Reviewer: tenant, Operator: tenant},
	Verdict:       {Starter: question, User: ownQuestion, Reviewer: byRole, Operator: tenant},
	RulingList:    {Starter: tenant, Reviewer: tenant, Operator: tenant},
	RulingLift:    {Reviewer: tenant, Operator: tenant},
	RulingConfirm: {Reviewer: tenant, Operator: tenant},
	EffectList:    {Operator: tenant},
	EffectResolve: {Operator: tenant},
	Ops:           {Operator: tenant},
}

// Acts are all acts of the table, in a fixed order.
func Acts() []Act {
	var out []Act
	for a := range rules {
		out = append(out, a)
	}
	slices.Sort(out)
	return out
}

// Check says whether a caller may do something: nil, CodeDenied, or CodeNotFound.
//
// CodeNotFound is of a thing that the caller may not even know of: another
// tenant's, or a run that serves somebody else. Its text is that of [NotFound],
// so that the answer is the one of a thing that does not exist. An act that the
// caller may never do is CodeDenied before anything is looked up, also where it
// is about nothing: ask with the zero On first.
func Check(c Caller, act Act, on On) error {
	reaches := rules[act]
	if !slices.ContainsFunc(c.May, func(r Role) bool { return reaches[r] != nil }) {
		return agent.Errorf(agent.CodeDenied, "%s: this access token may not do it: it needs %s", act, oneOf(act))
	}
	if on.AsUser != "" && !c.Is(Starter) && on.AsUser != c.Subject {
		return agent.Errorf(agent.CodeDenied, "%s: only a starter speaks for somebody else (as_user)", act)
	}
	if on.Tenant != "" && on.Tenant != c.Tenant || on.Run != "" && on.AsUser != "" && on.AsUser != on.User {
		return NotFound()
	}
	if allows(c, act, on) {
		return nil
	}
	if !allows(c, RunGet, on) {
		return NotFound()
	}
	return agent.Errorf(agent.CodeDenied, "%s: %s", act, why(act, on))
}

func allows(c Caller, act Act, on On) bool {
	return slices.ContainsFunc(c.May, func(r Role) bool {
		within := rules[act][r]
		return within != nil && within(c, on)
	})
}

func why(act Act, on On) string {
	switch {
	case on.Gate != nil && len(on.Gate.Roles) > 0 && act == Verdict:
		return fmt.Sprintf("the gate is for role %v, which this access token does not have", on.Gate.Roles)
	case on.Gate != nil:
		return "only questions to the user can be seen and answered with this access token"
	case on.Undo != "":
		return fmt.Sprintf("undo %q is not for users: none or turn is", on.Undo)
	}
	return "this access token may not do it here"
}

// oneOf names the roles that an act is for.
func oneOf(act Act) string {
	text := ""
	for _, r := range Roles {
		if rules[act][r] == nil {
			continue
		}
		if text != "" {
			text += " or "
		}
		text += string(r)
	}
	if text == "" {
		return "what nobody has"
	}
	return text
}

// NotFound is the one answer about what does not exist and about what the caller
// may not know of.
func NotFound() error {
	return agent.Errorf(agent.CodeNotFound, "there is no such thing, or this access token may not see it")
}
