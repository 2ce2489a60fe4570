package web

import (
	"context"
	"fmt"
	"net/http"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
)

// actsView are the forms of a run's page that the caller may send, each with an id
// of its own: whatever is sent from one of them twice is one act.
type actsView struct {
	Any                               bool
	MessageID, PauseID, ResumeID      string
	Cancel                            bool // the page of cancelling
	Policies                          []agent.MessagePolicy
	Problem, Of, Text, Policy, Reason string // what was sent, and not taken
	CallerIsUser                      bool
}

// acts are what the caller may do to a run now.
func (v *visit) acts(f found, sent actsView) actsView {
	out := sent
	if f.run.Status.Ended() {
		return out
	}
	may := func(act access.Act) bool { return access.Check(v.caller, act, f.on()) == nil }
	paused := f.run.Status == agent.RunPaused
	if may(access.Message) {
		out.MessageID, out.Policies = newID("page-"), agent.MessagePolicies
	}
	if may(access.Pause) && !paused {
		out.PauseID = newID("page-")
	}
	if may(access.Resume) && paused {
		out.ResumeID = newID("page-")
	}
	out.Cancel = may(access.Cancel) && f.run.Cancel == nil
	out.CallerIsUser = f.run.User == v.caller.Subject
	out.Any = out.MessageID+out.PauseID+out.ResumeID != "" || out.Cancel
	return out
}

// sending is an act of a form, once it is known that the caller may do it.
type sending func(ctx context.Context, s Starter, address, id string, who agent.Principal) (agent.Receipt, error)

// act sends what a form of a run's page says, and shows the run then.
func act(of access.Act, send func(v *visit) (sending, error)) func(*visit) error {
	return func(v *visit) error {
		f, err := v.find(of)
		if err != nil {
			return err
		}
		do, err := send(v)
		if err == nil && v.form("id") == "" {
			err = agent.Errorf(agent.CodeInvalid, "the form is not whole: open the run again and send it there")
		}
		if err != nil {
			return v.actAgain(http.StatusUnprocessableEntity, f, of, err)
		}
		r, err := do(v.ctx, v.Starter, f.chain.Address, v.form("id"), v.caller.Principal())
		target := f.chain.Address
		if ruling := v.r.PathValue("ruling"); ruling != "" {
			target += "#" + ruling
		}
		switch err = v.audited(of, target, asError(r, err)); agent.ErrorCode(err) {
		case agent.CodeInvalid:
			return v.actAgain(http.StatusUnprocessableEntity, f, of, err)
		case agent.CodeConflict: // such as a message to a busy run, whose policy is reject
			return v.actAgain(http.StatusConflict, f, of, err)
		default:
			if err != nil {
				return err
			}
		}
		v.to(fmt.Sprintf("%s?after=%d", runPath(f.run.Agent, f.run.Key), r.Seq))
		return nil
	}
}

// actAgain shows the run with the form as it was sent, and what is wrong with it.
func (v *visit) actAgain(status int, f found, of access.Act, err error) error {
	return v.runPage(status, f, actsView{Problem: err.Error(), Of: string(of), Text: v.form("text"), Policy: v.form("policy"), Reason: v.form("reason")})
}

func sendMessage(v *visit) (sending, error) {
	m := signals.Message{Text: v.form("text"), Policy: agent.MessagePolicy(v.form("policy"))}
	if m.Text == "" {
		return nil, agent.Errorf(agent.CodeInvalid, "the message is empty: write what the run is to be told")
	}
	return func(ctx context.Context, s Starter, address, id string, who agent.Principal) (agent.Receipt, error) {
		m.ID, m.Principal = id, who
		return s.Message(ctx, address, m)
	}, nil
}

func sendPause(v *visit) (sending, error) {
	reason := v.form("reason")
	return func(ctx context.Context, s Starter, address, id string, who agent.Principal) (agent.Receipt, error) {
		return s.Pause(ctx, address, signals.Pause{ID: id, Principal: who, Reason: reason})
	}, needed(reason, "say why the run is paused: whoever finds it so is told")
}

func sendResume(v *visit) (sending, error) {
	reason := v.form("reason")
	return func(ctx context.Context, s Starter, address, id string, who agent.Principal) (agent.Receipt, error) {
		return s.Resume(ctx, address, signals.Resume{ID: id, Principal: who, Reason: reason})
	}, nil
}

func sendLift(v *visit) (sending, error) {
	reason, ruling := v.form("reason"), v.r.PathValue("ruling")
	return func(ctx context.Context, s Starter, address, id string, who agent.Principal) (agent.Receipt, error) {
		return s.LiftRuling(ctx, address, signals.LiftRuling{ID: id, Ruling: ruling, Principal: who, Reason: reason})
	}, needed(reason, "say why the ruling is lifted: the model is told, and the next reviewer sees it")
}

func sendConfirm(v *visit) (sending, error) {
	reason, ruling := v.form("reason"), v.r.PathValue("ruling")
	return func(ctx context.Context, s Starter, address, id string, who agent.Principal) (agent.Receipt, error) {
		return s.ConfirmRuling(ctx, address, signals.ConfirmRuling{ID: id, Ruling: ruling, Principal: who, Reason: reason})
	}, nil
}

func needed(text, why string) error {
	if text == "" {
		return agent.Errorf(agent.CodeInvalid, "%s", why)
	}
	return nil
}
