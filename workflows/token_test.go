package workflows_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

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
	w.config.Trust = token.Trust{Issuer: issuer, Audience: "interlock", Keys: files, Directory: w.config.Trust.Directory}
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
	require.Equal(t, agent.CodeDenied, agent.ErrorCode(err), "nothing proves who sent it: %v", err)
	require.NoError(t, temporalClient.CancelWorkflow(w.ctx, address, ""), "who reaches the namespace can")
	w.finished(address, agent.RunCancelled)
}

// A start proves who begins the run and who its first message is from; so does a
// message of a session that begins one, and the next one of that session.
func TestToken_Starts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(scripted.Say("hm")), lab{db: labDB(t), signed: true}.agent())
	private, _ := w.signed(t)
	by := w.signer(t, private, "k1")
	start := w.startInput("begun")
	start.Principal = agent.Principal{Subject: "shop", Roles: []string{"backend"}}
	start.Message = &signals.Message{ID: "m1", Principal: customer, Text: "hello"}
	made, err := by.Start(w.ctx, start)
	require.NoError(t, err)
	again, err := by.Start(w.ctx, start)
	require.NoError(t, err, "signed anew, and the same start")
	require.Equal(t, starter.Started{Address: made.Address, FirstRunID: made.FirstRunID}, again)
	w.until(made.Address, "the reply", waiting("user"))
	require.Equal(t, agent.Principal{Subject: "shop", Roles: []string{"backend"}, Tenant: "acme", Auth: issuer},
		recorded[agent.StartedData](w, made.Address, agent.EventStarted)[0].Principal)
	require.Equal(t, issuer, recorded[agent.MessageData](w, made.Address, agent.EventMessage)[0].Principal.Auth)

	said, err := by.Converse(w.ctx, w.talk("session", "s1", "hello"))
	require.NoError(t, err)
	require.True(t, said.New)
	w.until(said.Address, "the reply", waiting("user"))
	said, err = by.Converse(w.ctx, w.talk("session", "s2", "and again"))
	require.NoError(t, err)
	require.False(t, said.New)
	w.until(said.Address, "the reply", waiting("user"))
	for _, m := range recorded[agent.MessageData](w, said.Address, agent.EventMessage) {
		require.Equal(t, issuer, m.Principal.Auth, m.ID)
	}
	w.requireReplay(made.Address)
	w.requireReplay(said.Address)
}

// A start whose token is of somebody else, of other words, or of another start
// begins no run.
func TestToken_StartsNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(scripted.Say("hm")), lab{db: labDB(t), signed: true}.agent())
	private, _ := w.signed(t)
	require.NoError(t, token.Generate(private, private, "stranger"))
	started, err := w.signer(t, private, "stranger").Start(w.ctx, w.startInput("foreign"))
	require.NoError(t, err, "no worker need be up for it")
	kind, message := w.errorOf(started.Address)
	require.Equal(t, signals.ErrInvalid, kind)
	require.Contains(t, message, "there is no key stranger")
	_, err = w.store.RunRow(w.ctx, store.Chain{Tenant: "acme", Address: started.Address})
	require.Equal(t, agent.CodeNotFound, agent.ErrorCode(err), "nothing is recorded")

	key, err := token.OpenSigner(filepath.Join(private, "k1.key.pem"))
	require.NoError(t, err)
	for name, change := range map[string]func(*token.Claims, *signals.Start){
		"of other words":    func(_ *token.Claims, s *signals.Start) { s.User = "eve" },
		"of another id":     func(_ *token.Claims, s *signals.Start) { s.ID = "s-2" },
		"of a run":          func(c *token.Claims, _ *signals.Start) { c.FirstRunID = started.FirstRunID },
		"of a message":      func(c *token.Claims, _ *signals.Start) { c.Act = signals.NameMessage },
		"of another person": func(_ *token.Claims, s *signals.Start) { s.Message.Principal.Subject = "eve" },
	} {
		in := signals.Start{ID: "s-1", Agent: "lab", Tenant: "acme", Key: w.id("k"), Principal: agent.Principal{Subject: "shop"}, Body: agent.JSON(`{"name":"n"}`),
			Message: &signals.Message{ID: "m", Principal: customer, Text: "pay"}}
		address := signals.Address("acme", "lab", in.Key)
		plain, err := agent.Encode(in)
		require.NoError(t, err)
		body, err := signals.Said(plain)
		require.NoError(t, err)
		claims := token.Claims{Issuer: issuer, Audience: "interlock", Subject: "shop", Tenant: "acme", Address: address,
			FirstRunID: signals.StartChain("s-1"), Act: signals.ActStart, Body: body, ID: "s-1", Issued: time.Now(), Expires: time.Now().Add(time.Minute)}
		change(&claims, &in)
		in.Token, err = key.Sign(claims)
		require.NoError(t, err)
		_, err = temporalClient.ExecuteWorkflow(w.ctx, client.StartWorkflowOptions{ID: address, TaskQueue: w.config.Settings.TaskQueue}, "lab", in)
		require.NoError(t, err)
		_, message := w.errorOf(address)
		require.Contains(t, message, "the token is of another", name)
	}
}
