package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/store"
)

// History is what a workflow holds of its run: who it is, and all its events.
// It makes valid chains for tests.
type History struct {
	t      testing.TB
	Ref    store.RunRef
	Events []agent.Event
	Head   agent.Head
}

// Epoch is when every history starts.
var Epoch = time.Date(2026, 3, 1, 9, 0, 0, 123456000, time.UTC)

// NewHistory is a run of the agent refund that has just started.
func NewHistory(t testing.TB, tenant, key, firstRunID string) *History {
	return NewHistoryOf(t, tenant, firstRunID, Epoch, agent.StartedData{
		Agent: "refund", Version: 1, Key: key, User: "ann", BodyDigest: "body-1", FirstRunID: firstRunID, Body: agent.JSON(`{}`)})
}

// NewHistoryOf is a run that has just started, as d says.
func NewHistoryOf(t testing.TB, tenant, firstRunID string, at time.Time, d agent.StartedData) *History {
	if d.Salt == "" {
		d.Salt = "salt of " + firstRunID
	}
	h := &History{t: t, Head: agent.Head{Status: agent.RunRunning, Phase: "collect"},
		Ref: store.RunRef{Tenant: tenant, Address: "acme/" + d.Agent + "/" + d.Key, FirstRunID: firstRunID, Branch: firstRunID}}
	h.addAt(at, agent.EventStarted, d)
	return h
}

// Add appends an event, a second after the one before it.
func (h *History) Add(kind agent.EventType, data any) *History {
	return h.addAt(h.Events[len(h.Events)-1].At.Add(time.Second), kind, data)
}

func (h *History) addAt(at time.Time, kind agent.EventType, data any) *History {
	h.t.Helper()
	text, err := agent.Encode(data)
	require.NoError(h.t, err)
	h.Events = append(h.Events, agent.Event{Seq: h.Last() + 1, At: at, Type: kind, V: 1, Turn: 2, Step: "2.1",
		Tenant: h.Ref.Tenant, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Data: text})
	return h
}

// Say adds n messages with this text.
func (h *History) Say(n int, text string) *History {
	for range n {
		h.Add(agent.EventMessage, agent.MessageData{ID: fmt.Sprintf("m%d", h.Last()+1), Text: text})
	}
	return h
}

// Open adds a gate, as a step's.
func (h *History) Open(id string, roles ...string) *History {
	opened := h.Events[len(h.Events)-1].At.Add(time.Second)
	expires := opened.Add(time.Hour)
	return h.Add(agent.EventGateOpened, agent.GateOpenedData{Gate: agent.Gate{ID: id, Kind: agent.KindTool, Tool: "pay",
		Args: agent.JSON(awkward), Title: "Refund <50> & more", Roles: roles, Shown: map[string]agent.JSON{"amount": agent.JSON(`9007199254740993`)},
		Digest: "d-" + id, OpenedAt: opened, ExpiresAt: &expires, Status: agent.GateOpen}})
}

// CloseGate adds the end of a gate.
func (h *History) CloseGate(id string, status agent.GateStatus) *History {
	return h.Add(agent.EventGateClosed, agent.GateClosedData{Gate: id, Status: status, Reason: "seen & <checked>",
		Verdict: agent.Approve, By: &agent.Principal{Subject: "rita", Roles: []string{"refunds"}}, Verified: true})
}

// Reset is the run as a Temporal reset leaves it: another branch of the same
// chain, that has the events up to last.
func (h *History) Reset(branch string, last int64) *History {
	r := &History{t: h.t, Ref: h.Ref, Head: h.Head, Events: slices.Clone(h.Events[:last])}
	r.Ref.Branch = branch
	return r
}

// Follow is another run that has just started at the address of h, and names
// the one that began as after.
func (h *History) Follow(firstRunID, after string) *History {
	started := agent.StartedData{Agent: "refund", Version: 1, Key: "1", User: "ann", BodyDigest: "body-1", FirstRunID: firstRunID, After: after, Body: agent.JSON(`{}`)}
	return NewHistoryOf(h.t, h.Ref.Tenant, firstRunID, h.Events[len(h.Events)-1].At.Add(time.Minute), started)
}

// End adds the run's end.
func (h *History) End() *History {
	h.Head = agent.Head{Status: agent.RunCompleted, Phase: "done", Turn: 2}
	return h.Add(agent.EventCompleted, agent.EndedData{Reason: "done"})
}

// Chain names the run to a reader.
func (h *History) Chain() store.Chain {
	return store.Chain{Tenant: h.Ref.Tenant, Address: h.Ref.Address, FirstRunID: h.Ref.FirstRunID}
}

// Last is the seq of the last event.
func (h *History) Last() int64 { return int64(len(h.Events)) }

// Batch holds the events from first to last.
func (h *History) Batch(first, last int64) agent.Batch {
	return agent.Batch{Salt: h.salt(), First: first, Before: h.Hash(first - 1), Events: slices.Clone(h.Events[first-1 : last]), Head: h.Head}
}

// salt is that of the history's first event.
func (h *History) salt() string {
	salt, err := agent.SaltOf(h.Events[0])
	require.NoError(h.t, err)
	return salt
}

// Hash is the chain's hash up to and including event last.
func (h *History) Hash(last int64) string {
	hash := ""
	for _, e := range h.Events[:last] {
		hash = e.Chain(h.salt(), hash)
	}
	return hash
}
