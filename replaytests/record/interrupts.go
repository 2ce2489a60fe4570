package main

import (
	"context"
	"fmt"
	"sync"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/replaytests/internal/freight"
	"interlock/signals"
	"interlock/tool"
)

// three are tools in flight, of which each ends otherwise when its turn is cut short.
var three = scripted.Then(scripted.Call("track", boxes), scripted.Call("reserve", boxes), scripted.Call("ship", boxes))

// underway says when the tools of a world have begun, and lets the third go on.
type underway struct {
	begun sync.WaitGroup
	ship  chan struct{}
}

func newUnderway() (*underway, freight.World) {
	u := &underway{ship: make(chan struct{})}
	u.begun.Add(3)
	return u, freight.World{
		Track: func(ctx context.Context, _ freight.Args) (freight.Mark, error) {
			u.begun.Done()
			<-ctx.Done()
			return freight.Mark{}, ctx.Err()
		},
		// It is told to stop, and has happened all the same.
		Reserve: func(ctx context.Context, _ tool.Key, _ freight.Args) (freight.Mark, error) {
			u.begun.Done()
			<-ctx.Done()
			return freight.Mark{Mark: "slot 9"}, nil
		},
		Ship: func(ctx context.Context, _ tool.Key, _ freight.Args) (freight.Mark, error) {
			u.begun.Done()
			select {
			case <-ctx.Done():
				return freight.Mark{}, ctx.Err()
			case <-u.ship:
				return freight.Mark{Mark: "ship 1"}, nil
			}
		},
	}
}

// interrupted cuts a turn short while three tools run: what reads is abandoned, what
// is told to stop has happened and is undone, and the third is waited for.
func interrupted(ctx context.Context, w *world) (string, error) {
	u, f := newUnderway()
	address, err := w.freightRun(ctx, f, three, scripted.Say("They wait."))
	if err != nil {
		return "", err
	}
	u.begun.Wait()
	if err := w.cut(ctx, address, agent.MessageInterrupt, agent.TookInterrupted); err != nil {
		return "", err
	}
	close(u.ship)
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// rolledBack takes a turn back whose one call has happened while another runs. The
// compensation is a step of its own.
func rolledBack(ctx context.Context, w *world) (string, error) {
	u, f := newUnderway()
	u.begun.Add(-1)
	f.Reserve = nil
	calls := scripted.Then(scripted.Call("reserve", boxes), scripted.Call("track", boxes), scripted.Call("ship", boxes))
	address, err := w.freightRun(ctx, f, calls, scripted.Say("It is as it was."))
	if err != nil {
		return "", err
	}
	u.begun.Wait()
	if _, err := w.until(ctx, address, "the slot", func(r *agent.Run) bool { return len(r.Steps) == 3 && r.Steps[0].Status == agent.StepDone }); err != nil {
		return "", err
	}
	if err := w.cut(ctx, address, agent.MessageRollback, agent.TookRollingBack); err != nil {
		return "", err
	}
	close(u.ship)
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// rolledBackFields takes a turn back of which nothing stands, with what it had found:
// the fields that it changed are as they were.
func rolledBackFields(ctx context.Context, w *world) (string, error) {
	begun := make(chan struct{})
	more := boxes
	more.Boxes++
	track := func(ctx context.Context, a freight.Args) (freight.Mark, error) {
		if a == boxes {
			return freight.Mark{Mark: "Lyon 2"}, nil
		}
		close(begun)
		<-ctx.Done()
		return freight.Mark{}, ctx.Err()
	}
	calls := scripted.Then(scripted.Call("track", boxes), scripted.Call("reserve", boxes), scripted.Call("track", more))
	address, err := w.freightRun(ctx, freight.World{Track: track}, calls, scripted.Say("It is as it was."))
	if err != nil {
		return "", err
	}
	<-begun
	done := func(r *agent.Run) bool {
		return len(r.Steps) == 3 && r.Steps[0].Status == agent.StepDone && r.Steps[1].Status == agent.StepDone
	}
	if _, err := w.until(ctx, address, "the slot", done); err != nil {
		return "", err
	}
	if err := w.cut(ctx, address, agent.MessageRollback, agent.TookRollingBack); err != nil {
		return "", err
	}
	_, err = w.resting(ctx, address, "user", 2)
	return address, err
}

// cut interrupts a run, which must say that it is.
func (w *world) cut(ctx context.Context, address string, p agent.MessagePolicy, want agent.TookHow) error {
	r, err := w.starter.Message(ctx, address, signals.Message{ID: "cut", Principal: agent.Principal{Subject: receiver}, Text: "Wait, not yet.", Policy: p})
	if err != nil {
		return err
	}
	if r.Took == nil || r.Took.How != want {
		return fmt.Errorf("the message took effect as %v, and should have as %s", r.Took, want)
	}
	return nil
}

// cancelledAndUndone ends a run by undoing all that it did.
func cancelledAndUndone(ctx context.Context, w *world) (string, error) {
	address, err := w.freightRun(ctx, freight.World{}, scripted.Call("reserve", boxes), scripted.Say("It is reserved."))
	if err != nil {
		return "", err
	}
	if _, err := w.resting(ctx, address, "user", 2); err != nil {
		return "", err
	}
	if _, err := w.starter.Cancel(ctx, address, signals.Cancel{ID: "c1", Principal: agent.Principal{Subject: receiver}, Reason: "I have them", Undo: agent.UndoRun}); err != nil {
		return "", err
	}
	return address, w.untilClosed(ctx, address, agent.RunCancelled)
}

// repaired undoes a step of a run that has ended. It is the repair's history.
func repaired(ctx context.Context, w *world) (string, error) {
	turns := []llm.Response{scripted.Call("reserve", boxes), scripted.MoveTo("closed")}
	address, err := w.freightRun(ctx, freight.World{}, turns...)
	if err != nil {
		return "", err
	}
	if err := w.untilClosed(ctx, address, agent.RunCompleted); err != nil {
		return "", err
	}
	out, err := w.starter.Undo(ctx, address, signals.Undo{ID: "u1", Principal: operator, Steps: []string{"1.1"}, Reason: "wrong day"})
	if err != nil {
		return "", err
	}
	return out.Repair.Address, w.untilClosed(ctx, out.Repair.Address, agent.RunCompleted)
}
