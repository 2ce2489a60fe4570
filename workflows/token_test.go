package workflows_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/signals"
	"interlock/starter"
	"interlock/store"
	"interlock/token"
	"interlock/tool"
)

const issuer = "https://login.test"

// signed gives a world's workers keys, and its starter one to sign with.
func (w *world) signed(t *testing.T) (private, public string) {
	t.Helper()
	private, public = t.TempDir(), t.TempDir()
	require.NoError(t, token.Generate(private, public, "k1"))
	files, err := token.OpenFiles(public)
	require.NoError(t, err)
	w.config.Trust = token.Trust{Issuer: issuer, Audience: "interlock", Keys: files}
	w.serve(w.config.Model, w.agents...)
	return private, public
}

func (w *world) signer(t *testing.T, private, id string) *starter.Starter {
	t.Helper()
	by, err := token.OpenSigner(filepath.Join(private, id+".key.pem"))
	require.NoError(t, err)
	return starter.New(temporalClient, starter.WithReader(w.store), starter.WithTaskQueue(w.config.Settings.TaskQueue), starter.WithSigner(by, issuer, "interlock"))
}

// signedLab is an agent that takes signed verdicts only, at its gate.
func signedLab(t *testing.T, then ...llm.Response) (*world, string, agent.Gate) {
	t.Helper()
	agents := lab{db: labDB(t), signed: true, gate: &tool.Gate[labState, text]{Roles: []string{"refunds"}}}.agent()
	w := newWorld(t, turns(append([]llm.Response{call("pay", "1")}, then...)...), agents)
	address := w.start("k")
	w.say(address, "pay")
	return w, address, lastGate(w.until(address, "the gate", waiting("gate")))
}

// Only who is proven decides: an unsigned verdict is recorded and void, a wrong
// token is refused, a good one of another run, act or word is a wrong one.
func TestToken_Verdicts(t *testing.T) {
	t.Parallel()
	w, address, gate := signedLab(t, toEnd)
	private, public := w.signed(t)
	r := w.decide(address, gate, agent.Approve, "")
	require.Equal(t, agent.Voided, r.Status)
	require.Contains(t, r.Reason, "signed verdicts only")

	require.NoError(t, token.Generate(private, private, "stranger"))
	v := w.verdict(gate, agent.Approve, "")
	_, err := w.signer(t, private, "stranger").Decide(w.ctx, address, v)
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "there is no key stranger")

	// A token of the reviewer's for a message does not approve; nor does one that
	// was changed on the way, nor by a signal.
	row, err := w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: address})
	require.NoError(t, err)
	key, err := token.OpenSigner(filepath.Join(private, "k1.key.pem"))
	require.NoError(t, err)
	stolen, err := key.Sign(token.Claims{Issuer: issuer, Audience: "interlock", Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme", Address: address,
		FirstRunID: row.FirstRunID, Act: signals.NameMessage, Body: "d", ID: v.ID, Issued: time.Now(), Expires: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	v.Token = stolen
	w.signal(address, signals.NameVerdict, v)
	eventually(t, "the refusal is recorded", func() bool { return len(recorded[agent.InputRefusedData](w, address, agent.EventInputRefused)) == 1 })
	require.Contains(t, recorded[agent.InputRefusedData](w, address, agent.EventInputRefused)[0].Reason, "the token is of another act")

	// A new key is believed as soon as it is there, with gates pending; who the
	// token names decides, whatever the payload says.
	require.NoError(t, token.Generate(private, public, "k2"))
	require.NoError(t, os.Remove(filepath.Join(public, "k1.pem")))
	v = w.verdict(gate, agent.Approve, "")
	r, err = w.signer(t, private, "k2").Decide(w.ctx, address, v)
	require.NoError(t, err)
	require.Equal(t, agent.Accepted, r.Status, r.Reason)
	run := w.finished(address, agent.RunCompleted)
	closed := run.Gates[0]
	require.True(t, closed.Verified)
	require.Equal(t, agent.Principal{Subject: "ann", Roles: []string{"refunds"}, Tenant: "acme", Auth: issuer}, *closed.By)

	repeat, err := w.signer(t, private, "k2").Decide(w.ctx, address, v)
	require.NoError(t, err, "the same verdict again, signed anew")
	require.Equal(t, r, repeat)
}

// Messages and steering prove their senders in the same way; a role that the token
// does not have is not claimed by the payload.
func TestToken_OtherInputs(t *testing.T) {
	t.Parallel()
	w, address, gate := signedLab(t, scripted.Say("A colleague looks at it."), scripted.Say("Still."), scripted.Say("Still."))
	private, _ := w.signed(t)
	by := w.signer(t, private, "k1")
	_, err := by.Message(w.ctx, address, signals.Message{ID: "m-signed", Principal: customer, Text: "and now?"})
	require.NoError(t, err)
	_, err = by.Pause(w.ctx, address, signals.Pause{ID: "p", Principal: ops, Reason: "look"})
	require.NoError(t, err)
	eventually(t, "who has paused it is recorded as proven", func() bool {
		p := recorded[agent.PausedData](w, address, agent.EventPaused)
		return len(p) == 1 && p[0].Principal.Auth == issuer
	})
	_, err = by.Resume(w.ctx, address, signals.Resume{ID: "r", Principal: ops})
	require.NoError(t, err)

	intern := w.verdict(gate, agent.Approve, "")
	intern.Principal = agent.Principal{Subject: "ian", Roles: []string{"interns"}}
	eventually(t, "the message is answered", func() bool { r, err := w.starter.Get(w.ctx, address); return err == nil && r.Owed == 0 })
	r, err := by.Decide(w.ctx, address, intern)
	require.NoError(t, err)
	require.Equal(t, agent.Voided, r.Status)
	require.Contains(t, r.Reason, "needs the role refunds")

	w.stop()
	w.config.Trust = token.Trust{}
	w.serve(w.config.Model, w.agents...)
	_, err = by.Decide(w.ctx, address, w.verdict(gate, agent.Approve, ""))
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "%v", err)
	require.ErrorContains(t, err, "this worker has no keys to check tokens with")
	_, err = by.Cancel(w.ctx, address, signals.Cancel{ID: "c", Principal: ops})
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "%v", err)
	_, err = w.starter.Cancel(w.ctx, address, signals.Cancel{ID: "c", Principal: ops})
	require.NoError(t, err)
	w.finished(address, agent.RunCancelled)
}
