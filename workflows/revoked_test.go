package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/tool"
)

// people are a directory whose roles a test takes away.
type people struct {
	mu    sync.Mutex
	taken map[string]bool // subjects
	down  error
}

func (p *people) answer(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = err
}

func (p *people) take(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[subject] = true
}

func (p *people) Roles(_ context.Context, who agent.Principal) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[who.Subject] {
		return nil, nil
	}
	return who.Roles, p.down
}

// A role that is taken away after an approval was counted and before the step
// starts starts nothing: another person is asked, about the same call as a new
// effect. The call runs once.
func TestRevoked_BeforeTheStepStarts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pay", "send"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, sent := labDB(t), newCounter()
			gate := tool.Gate[labState, text]{Roles: []string{"refunds"}, Quorum: 2}
			w := newWorld(t, turns(call(name, "1"), toEnd), lab{db: db, send: sent.tool, gate: &gate, sendGate: &gate}.agent())
			directory := &people{taken: map[string]bool{}}
			w.config.Trust.Directory = directory
			w.serve(w.config.Model, w.agents...)
			address := w.start("k")
			w.say(address, "go")
			first := lastGate(w.until(address, "the gate", waiting("gate")))
			approve := func(who string, g agent.Gate) agent.Receipt {
				return w.as(named(who), address, g, w.verdict(g, agent.Approve, ""))
			}
			require.Equal(t, agent.Accepted, approve("ann", first).Status)
			directory.take("ann")
			require.Equal(t, agent.Accepted, approve("bob", first).Status)

			again := lastGate(w.until(address, "another gate", func(r *agent.Run) bool { return lastGate(r).ID != first.ID && waiting("gate")(r) }))
			require.Equal(t, first.ID, again.Replaces)
			require.Zero(t, payments(t, db)+sent.total())
			require.Equal(t, agent.Accepted, approve("bob", again).Status)
			require.Equal(t, agent.Accepted, approve("cyd", again).Status)
			run := w.finished(address, agent.RunCompleted)
			require.Equal(t, 1, payments(t, db)+sent.total())

			i := slices.IndexFunc(run.Steps, func(s agent.Step) bool { return s.ID == first.ID })
			require.Equal(t, agent.StepVoid, run.Steps[i].Status)
			require.Equal(t, "not started: ann, who approved it, has not the role refunds any more", run.Steps[i].Reason)
			settled := recorded[agent.StepSettledData](w, address, agent.EventStepSettled)
			require.True(t, settled[0].ForGood, "its key is closed")
			require.Len(t, recorded[agent.StepDoneData](w, address, agent.EventStepDone), 1)
		})
	}
}

// A start that cannot be judged is neither believed nor refused: it waits until the
// directory answers. A verdict is refused for now, and can be sent again.
func TestRevoked_WhileNobodyCanSay(t *testing.T) {
	t.Parallel()
	w, address, gate := signedLab(t, toEnd)
	directory := &people{}
	w.config.Trust.Directory = directory
	private, _ := w.signed(t)
	by := w.signer(t, private, "k1")
	directory.answer(errors.New("line 3 is no line"))
	v := w.verdict(gate, agent.Approve, "")
	_, err := by.Decide(w.ctx, address, v)
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "could not be checked (the token is not believed: what ann may still do cannot be found out: line 3 is no line): send it again")

	made, err := by.Start(w.ctx, w.startInput("waits"))
	require.NoError(t, err)
	eventually(t, "it says why it waits", func() bool {
		why, err := by.Why(w.ctx, made.Address)
		return err == nil && strings.Contains(why.TaskFailure, "the token of the start cannot be checked")
	})
	directory.answer(nil)
	r, err := by.Decide(w.ctx, address, v)
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, r.Status)
	w.finished(address, agent.RunCompleted)
	eventually(t, "it goes on, and its start is believed", func() bool {
		started := recorded[agent.StartedData](w, made.Address, agent.EventStarted)
		return len(started) == 1 && started[0].Principal.Auth == issuer
	})
}
