package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/replaytests/internal/freight"
	"interlock/signals"
	"interlock/starter"
	"interlock/token"
	"interlock/tool"
	"interlock/worker"
)

var (
	boxes    = freight.Args{OrderID: "o-4", Boxes: 3}
	clerk    = agent.Principal{Subject: "ann", Roles: []string{freight.Clerk}}
	second   = agent.Principal{Subject: "bob", Roles: []string{freight.Clerk}}
	operator = agent.Principal{Subject: "olga", Roles: []string{agent.DefaultOperator}}
)

const receiver = "u-4"

// manned gives a world the functions that it lacks; they answer at once.
func manned(w freight.World) freight.World {
	marked := func(mark string) func(context.Context, tool.Key, freight.Args) (freight.Mark, error) {
		return func(context.Context, tool.Key, freight.Args) (freight.Mark, error) {
			return freight.Mark{Mark: mark}, nil
		}
	}
	if w.Track == nil {
		w.Track = func(context.Context, freight.Args) (freight.Mark, error) { return freight.Mark{Mark: "Lyon 2"}, nil }
	}
	if w.Reserve == nil {
		w.Reserve = marked("slot 9")
	}
	if w.Ship == nil {
		w.Ship = marked("ship 1")
	}
	if w.Pay == nil {
		w.Pay = marked("paid 1")
	}
	if w.Ring == nil {
		w.Ring = func(context.Context, freight.Args) (freight.Mark, error) { return freight.Mark{Mark: receiver}, nil }
	}
	w.Release = func(context.Context, tool.Key, freight.Taken) (freight.Mark, error) {
		return freight.Mark{Mark: "free"}, nil
	}
	return w
}

// freightRun serves the agent with a script, and starts a run.
func (w *world) freightRun(ctx context.Context, f freight.World, turns ...llm.Response) (string, error) {
	if err := w.serve(ctx, scripted.New("script", turns...), freight.Agent(manned(f))); err != nil {
		return "", err
	}
	return w.start(ctx, "freight", receiver, freight.Start{OrderID: boxes.OrderID}, "Please send my boxes.")
}

// resting waits for a run to wait, after a turn, and for its journal.
func (w *world) resting(ctx context.Context, address, reason string, turn int) (*agent.Run, error) {
	run, err := w.until(ctx, address, "the run waits for "+reason, func(r *agent.Run) bool {
		return r.Status == agent.RunWaiting && r.Reason == reason && r.Turn == turn && r.Owed == 0
	})
	if err != nil {
		return nil, err
	}
	return run, w.untilRecorded(ctx, run)
}

// atGate waits for a gate after a turn.
func (w *world) atGate(ctx context.Context, address string, turn int) (agent.Gate, error) {
	run, err := w.resting(ctx, address, "gate", turn)
	if err != nil {
		return agent.Gate{}, err
	}
	return openGate(run)
}

func openGate(run *agent.Run) (agent.Gate, error) {
	for _, g := range run.Gates {
		if g.Status == agent.GateOpen {
			return g, nil
		}
	}
	return agent.Gate{}, errors.New("no gate is open")
}

// decide gives a verdict on a gate, which must be taken so.
func (w *world) decide(ctx context.Context, by *starter.Starter, address string, g agent.Gate, want agent.ReceiptStatus, v signals.Verdict) error {
	w.sent++
	v.ID, v.Gate, v.Digest = fmt.Sprintf("v%d", w.sent), g.ID, g.Digest
	r, err := by.Decide(ctx, address, v)
	if err == nil && r.Status != want {
		err = fmt.Errorf("the verdict is %s and should be %s: %s", r.Status, want, r.Reason)
	}
	return err
}

// edited: ann edits a call that two persons must approve, which is her own approval
// of it; bob's lets it run.
func edited(ctx context.Context, w *world) (string, error) {
	address, err := w.freightRun(ctx, freight.World{}, scripted.Call("pay_two", boxes), scripted.Say("It is paid."))
	if err != nil {
		return "", err
	}
	gate, err := w.atGate(ctx, address, 1)
	if err != nil {
		return "", err
	}
	if err := w.decide(ctx, w.starter, address, gate, agent.Accepted, signals.Verdict{Verdict: agent.Edit, Principal: clerk, Reason: "one is lost",
		Args: agent.JSON(`{"order_id":"o-4","boxes":2}`)}); err != nil {
		return "", err
	}
	if gate, err = w.atGate(ctx, address, 1); err != nil {
		return "", err
	}
	if err := w.decide(ctx, w.starter, address, gate, agent.Accepted, signals.Verdict{Verdict: agent.Approve, Principal: second}); err != nil {
		return "", err
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// takenBack: a verdict waits, is taken back while it does, and another takes effect.
func takenBack(ctx context.Context, w *world) (string, error) {
	address, err := w.freightRun(ctx, freight.World{}, scripted.Call("pay_later", boxes), scripted.Say("It is paid."))
	if err != nil {
		return "", err
	}
	gate, err := w.atGate(ctx, address, 1)
	if err != nil {
		return "", err
	}
	for _, v := range []struct {
		is   agent.VerdictValue
		want agent.ReceiptStatus
	}{{agent.Approve, agent.KeptBack}, {agent.TakeBack, agent.Accepted}, {agent.Approve, agent.KeptBack}} {
		if err := w.decide(ctx, w.starter, address, gate, v.want, signals.Verdict{Verdict: v.is, Principal: clerk}); err != nil {
			return "", err
		}
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// expired: nobody decides, neither who may at once nor who may later.
func expired(ctx context.Context, w *world) (string, error) {
	address, err := w.freightRun(ctx, freight.World{}, scripted.Call("pay_soon", boxes), scripted.Say("Nobody has decided."))
	if err != nil {
		return "", err
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// inTime: a gate is decided before it expires, and before it is escalated.
func inTime(ctx context.Context, w *world) (string, error) {
	address, err := w.freightRun(ctx, freight.World{}, scripted.Call("pay_soon", boxes), scripted.Say("It is paid."))
	if err != nil {
		return "", err
	}
	gate, err := w.atGate(ctx, address, 1)
	if err != nil {
		return "", err
	}
	if err := w.decide(ctx, w.starter, address, gate, agent.Accepted, signals.Verdict{Verdict: agent.Approve, Principal: clerk}); err != nil {
		return "", err
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// ruled: what a person rejected is refused by code, until a person lifts the ruling;
// then the same call is asked for, and the gate shows it.
func ruled(ctx context.Context, w *world) (string, error) {
	pay := scripted.Call("pay", boxes)
	address, err := w.freightRun(ctx, freight.World{}, pay, pay, scripted.Say("It must not be paid."), pay)
	if err != nil {
		return "", err
	}
	gate, err := w.atGate(ctx, address, 1)
	if err != nil {
		return "", err
	}
	if err := w.decide(ctx, w.starter, address, gate, agent.Accepted, signals.Verdict{Verdict: agent.Reject, Principal: clerk, Reason: "not ours"}); err != nil {
		return "", err
	}
	run, err := w.resting(ctx, address, "user", 3)
	if err != nil {
		return "", err
	}
	if len(run.Rulings) != 1 {
		return "", fmt.Errorf("there are %d rulings", len(run.Rulings))
	}
	if _, err := w.starter.LiftRuling(ctx, address, signals.LiftRuling{ID: "l1", Ruling: run.Rulings[0].ID, Principal: clerk, Reason: "it is ours"}); err != nil {
		return "", err
	}
	if err := w.say(ctx, address, receiver, "Once more, please."); err != nil {
		return "", err
	}
	_, err = w.atGate(ctx, address, 4)
	return address, err
}

// inDoubt: nobody knows whether what cannot be asked about happened, and an operator
// finds out. The next model call settles it in the ledger.
func inDoubt(ctx context.Context, w *world) (string, error) {
	address, err := w.doubtful(ctx, scripted.Say("They know."))
	if err != nil {
		return "", err
	}
	run, err := w.resting(ctx, address, "operator", 1)
	if err != nil {
		return "", err
	}
	gate, err := openGate(run)
	if err != nil {
		return "", err
	}
	if err := w.decide(ctx, w.starter, address, gate, agent.Accepted, signals.Verdict{Verdict: agent.Happened, Principal: operator, Reason: "they said so",
		Result: agent.JSON(`{"mark":"u-4"}`)}); err != nil {
		return "", err
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// doubtful is a run whose one call nobody knows the end of.
func (w *world) doubtful(ctx context.Context, then ...llm.Response) (string, error) {
	dead := func(context.Context, freight.Args) (freight.Mark, error) {
		return freight.Mark{}, errors.New("the line went dead")
	}
	return w.freightRun(ctx, freight.World{Ring: dead}, append([]llm.Response{scripted.Call("ring", boxes)}, then...)...)
}

const issuer = "https://login.test"

// signed: a verdict proves who sent it, and the run has a local activity check that.
// Its token is one of a key that was made for this and is thrown away.
func signed(ctx context.Context, w *world) (string, error) {
	private, public := w.file("private"), w.file("public")
	if err := errors.Join(os.Mkdir(private, 0o700), os.Mkdir(public, 0o700), token.Generate(private, public, "k1")); err != nil {
		return "", err
	}
	keys, err := token.OpenFiles(public)
	if err != nil {
		return "", err
	}
	key, err := token.OpenSigner(filepath.Join(private, "k1.key.pem"))
	if err != nil {
		return "", err
	}
	w.config = func(c *worker.Config) { c.Trust = token.Trust{Issuer: issuer, Audience: "interlock", Keys: keys} }
	by := starter.New(w.client, starter.WithReader(w.store), starter.WithTaskQueue(w.name), starter.WithSigner(key, issuer, "interlock"))
	address, err := w.freightRun(ctx, freight.World{}, scripted.Call("pay", boxes), scripted.Say("It is paid."))
	if err != nil {
		return "", err
	}
	gate, err := w.atGate(ctx, address, 1)
	if err != nil {
		return "", err
	}
	if err := w.decide(ctx, by, address, gate, agent.Accepted, signals.Verdict{Verdict: agent.Approve, Principal: clerk}); err != nil {
		return "", err
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}
