package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// maxDrafts bounds the drafts of rulings that wait for a person.
const maxDrafts = 10

// maxDraftArgs bounds what a draft names, in bytes: a person is shown all of it.
const maxDraftArgs = 600

// binds reports whether a ruling refuses its call now.
func (m *Machine) binds(u Ruling) bool { return m.run.RulingStatus(u) == RulingBinds }

type ruleOutArgs struct {
	Tool   string `json:"tool"`
	Args   JSON   `json:"args"`
	Reason string `json:"reason"`
}

// ruleOut drafts a ruling. It binds nothing until a person confirms it.
func (m *Machine) ruleOut(c ProposedCall) {
	a, err := controlArgs[ruleOutArgs](c)
	if err == nil && strings.TrimSpace(a.Reason) == "" {
		err = Errorf(CodeInvalid, "a reason is needed: the person who decides about it reads it")
	}
	var args JSON
	var gate *gateDef
	if err == nil {
		args, gate, err = m.ruledOut(a)
	}
	drafts := 0
	for _, u := range m.run.Rulings {
		if u.Draft && u.Lifted == nil {
			drafts++
		}
		if err == nil && u.Tool == a.Tool && u.Args == digest(args) && (u.Draft || m.binds(u)) {
			err = Errorf(CodeConflict, "it is ruled out, or drafted, already as %s", u.ID)
		}
	}
	if err == nil && drafts >= maxDrafts {
		err = Errorf(CodeUnavailable, "%d drafts wait for a person already", drafts)
	}
	if err != nil {
		m.refuse(c, err.Error())
		return
	}
	u := Ruling{ID: "draft-" + c.ID, Tool: a.Tool, Title: a.Tool + " " + args.String(), Args: digest(args), Reason: clip(a.Reason, reasonLimit),
		By: Principal{Subject: "model"}, At: m.at, Draft: true}
	if gate != nil {
		u.Reads = gate.reads
	}
	m.emit(EventRulingDrafted, "", RulingDraftedData{Ruling: u})
	m.answer(c, "done", "drafted as "+u.ID+"; it binds nothing until a person confirms it")
}

// ruledOut are the arguments of the call that a draft names, and its policy.
func (m *Machine) ruledOut(a ruleOutArgs) (args JSON, gate *gateDef, err error) {
	if a.Tool == CallMove {
		if args, err = controlSchemas[reflect.TypeFor[moveArgs]()].arguments(a.Args.String(), reflect.TypeFor[moveArgs]()); err != nil {
			return nil, nil, err
		}
		mv := m.moveOf(args)
		if mv == nil || mv.gate == nil {
			return nil, nil, Errorf(CodeInvalid, "only a move of this phase that has a gate can be ruled out")
		}
		return args, mv.gate, nil
	}
	t := m.def.tools[a.Tool]
	if t == nil {
		return nil, nil, Errorf(CodeInvalid, "there is no tool %s", clip(a.Tool, idLimit))
	}
	if args, err = m.arguments(t, a.Args); err == nil && len(args) > maxDraftArgs {
		err = Errorf(CodeInvalid, "the arguments have %d bytes; at most %d can be ruled out by you", len(args), maxDraftArgs)
	}
	return args, t.gate, err
}

// rulers are the roles that may confirm or lift a ruling: those that may decide
// about its call, and operators.
func (m *Machine) rulers(u Ruling) []string {
	out := slices.Clone(m.def.operators)
	add := func(g *gateDef) {
		if g != nil {
			out = append(out, g.roles...)
		}
	}
	if t := m.def.tools[u.Tool]; t != nil {
		add(t.gate)
	}
	for _, p := range m.def.phases {
		for _, mv := range p.moves {
			if u.Tool == CallMove && digest(mustEncode(moveArgs{To: mv.to})) == u.Args {
				add(mv.gate)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// steerRuling finds the ruling that a person confirms or lifts, and checks that
// they may.
func (m *Machine) steerRuling(what, id, ruling, body string, who Principal, reason string) (u Ruling, r Receipt, stop bool) {
	if r, stop := m.steer(what, id, body, who, reason); stop {
		return u, r, true
	}
	known := m.run.ruling(ruling)
	if known == nil {
		return u, refused(CodeNotFound, "the run has no ruling %s; it has: %s", clip(ruling, idLimit), orNone(m.run.rulingIDs())), true
	}
	u = *known
	roles := m.rulers(u)
	switch {
	case !slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(who.Roles, r) }):
		return u, refused(CodeDenied, "deciding about ruling %s needs the role %s", u.ID, joinOr(roles)), true
	}
	return u, r, false
}

func (r *Run) rulingIDs() (out []string) {
	for _, u := range r.Rulings {
		out = append(out, u.ID)
	}
	return out
}

// CheckLift says whether a request to lift a ruling is one at all.
func CheckLift(ruling, reason string) error {
	if err := CheckConfirm(ruling); err != nil {
		return err
	}
	if strings.TrimSpace(reason) == "" {
		return Errorf(CodeInvalid, "lifting a ruling needs a reason: it is recorded, and the model is told")
	}
	return nil
}

// CheckConfirm says whether a request to confirm a ruling is one at all.
func CheckConfirm(ruling string) error {
	if ruling == "" || len(ruling) > idLimit || clean(ruling) != ruling {
		return Errorf(CodeInvalid, "name the ruling by its id, such as 3.1")
	}
	return nil
}

// liftRuling ends a ruling. The same call then opens a gate that shows it. It does
// not call the model, which is told in its next turn.
func (m *Machine) liftRuling(in LiftRuling) Receipt {
	body := digest([]any{"lift_ruling", clean(in.Ruling), clean(in.Reason)})
	u, r, stop := m.steerRuling("lift of a ruling", in.ID, in.Ruling, body, in.Principal, in.Reason)
	if stop {
		return r
	}
	if err := CheckLift(in.Ruling, in.Reason); err != nil {
		return refused(ErrorCode(err), "%v", err)
	}
	if u.Lifted != nil {
		return refused(CodeConflict, "ruling %s was lifted by %s already", u.ID, u.Lifted.By.Subject)
	}
	e := m.emit(EventRulingLifted, "", RulingConfirmedData{ID: in.ID, Ruling: u.ID, Principal: in.Principal, Reason: clean(in.Reason), Body: body})
	return Receipt{Status: Accepted, Seq: e.Seq}
}

// confirmRuling makes a draft bind to the values that it was drafted on.
func (m *Machine) confirmRuling(in ConfirmRuling) Receipt {
	body := digest([]any{"confirm_ruling", clean(in.Ruling), clean(in.Reason)})
	u, r, stop := m.steerRuling("confirmation of a ruling", in.ID, in.Ruling, body, in.Principal, in.Reason)
	if stop {
		return r
	}
	switch {
	case !u.Draft:
		return refused(CodeConflict, "ruling %s is no draft: it was made by %s", u.ID, u.By.Subject)
	case u.Lifted != nil:
		return refused(CodeConflict, "draft %s was dropped by %s", u.ID, u.Lifted.By.Subject)
	case !m.run.rests(u):
		return refused(CodeConflict, "%s changed since %s was drafted: it would bind nothing", strings.Join(u.Reads, " or "), u.ID)
	}
	e := m.emit(EventRulingConfirmed, "", RulingConfirmedData{ID: in.ID, Ruling: u.ID, Principal: in.Principal, Reason: clean(in.Reason), Body: body})
	return Receipt{Status: Accepted, Seq: e.Seq, Reason: fmt.Sprintf("%s is refused while %s unchanged", u.Title, unchanged(u.Reads))}
}
