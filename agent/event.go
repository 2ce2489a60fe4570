package agent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// EventType names what happened. Persisted in journals and histories; never rename.
type EventType string

const (
	EventStarted          EventType = "started"
	EventMessage          EventType = "message"
	EventTurnStarted      EventType = "turn_started"
	EventTurnCut          EventType = "turn_cut" // the model call ended without a proposal
	EventProposal         EventType = "proposal"
	EventCallAnswered     EventType = "call_answered" // code's answer to one call of the proposal
	EventReply            EventType = "reply"
	EventStateSet         EventType = "state_set"
	EventConfirmed        EventType = "confirmed"
	EventFactRecorded     EventType = "fact_recorded"
	EventPhaseEntered     EventType = "phase_entered"
	EventStepStarted      EventType = "step_started" // running, or waiting at its gate
	EventStepResumed      EventType = "step_resumed" // its gate was approved: running
	EventStepDone         EventType = "step_done"
	EventCommitRefused    EventType = "commit_refused" // the result stands, the state stays
	EventStepSettled      EventType = "step_settled"   // any other definite end, or in_doubt
	EventGateOpened       EventType = "gate_opened"
	EventGateClosed       EventType = "gate_closed"
	EventGateCounted      EventType = "gate_counted"   // an approval, where one is not enough or is the last
	EventGateEscalated    EventType = "gate_escalated" // more roles may decide
	EventGatePending      EventType = "gate_pending"   // a verdict can be taken back until it takes effect, or waits no more
	EventVerdict          EventType = "verdict"        // as it arrived, with its judgement
	EventRulingMade       EventType = "ruling_made"
	EventRulingDrafted    EventType = "ruling_drafted" // by the model: it binds nothing
	EventRulingConfirmed  EventType = "ruling_confirmed"
	EventRulingLifted     EventType = "ruling_lifted"
	EventCancelRequested  EventType = "cancel_requested"
	EventInputRefused     EventType = "input_refused" // a signal nobody can be answered for
	EventTrimmed          EventType = "trimmed"
	EventPaused           EventType = "paused"
	EventResumed          EventType = "resumed"
	EventAmended          EventType = "amended" // from outside; a state_set follows
	EventUndoRequested    EventType = "undo_requested"
	EventSnapshotLoaded   EventType = "snapshot_loaded" // the next Temporal run of the chain goes on
	EventReminded         EventType = "reminded"        // the user, who has said nothing
	EventCompleted        EventType = "completed"
	EventCancelled        EventType = "cancelled"
	EventFailed           EventType = "failed"            // it could not start
	EventInterrupted      EventType = "interrupted"       // a message cuts the turn short
	EventStepStopping     EventType = "step_stopping"     // it is told to stop; whether it has begun is found out
	EventStepBegun        EventType = "step_begun"        // it had begun before it was told to stop, and goes on
	EventInterruptSettled EventType = "interrupt_settled" // with the account of what became of the turn
)

// GateEvents are those of a gate's life: what whoever shows gates follows.
var GateEvents = []EventType{EventGateOpened, EventGateEscalated, EventGateCounted, EventGatePending, EventGateClosed}

// Event is one append-only record of something that changed the run. The
// events of a run in order, and nothing else, make the run: [Reduce].
type Event struct {
	Seq     int64     `json:"seq"` // 1, 2, 3 … without a gap
	At      time.Time `json:"at"`  // when its input arrived, UTC, microseconds
	Type    EventType `json:"type"`
	V       int       `json:"v"` // version of Data's schema
	Turn    int       `json:"turn,omitempty"`
	Step    string    `json:"step,omitempty"`
	Tenant  string    `json:"tenant"`
	TraceID string    `json:"trace_id,omitempty"`
	Data    JSON      `json:"data"`
}

// EndsCall reports whether the call of the model for e's turn ended with e: what was
// heard of its answer meanwhile counts no more.
func (e Event) EndsCall() bool { return e.Type == EventProposal || e.Type == EventTurnCut }

// Chain is the hash of the journal up to and including e, given the hash up to
// the event before it ("" before the first): hex HMAC-SHA256 under the run's salt,
// over both, each field behind its length. Who has a hash and not the salt learns
// nothing of a value, however few it can be; the salt stands in the run's first
// event ([StartedData]), so who can read the journal can verify it.
func (e Event) Chain(salt, before string) string {
	h := hmac.New(sha256.New, []byte(salt))
	for _, field := range []string{before, strconv.FormatInt(e.Seq, 10), e.At.UTC().Format(time.RFC3339Nano), string(e.Type),
		strconv.Itoa(e.V), strconv.Itoa(e.Turn), e.Step, e.Tenant, e.TraceID, e.Data.String()} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write([]byte(field))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// bytes is about the length of the event's JSON.
func (e Event) bytes() int {
	return len(e.Data) + len(e.Type) + len(e.Step) + len(e.Tenant) + len(e.TraceID) + 140
}

// SaltOf is the salt of the chain that begins with a run's first event.
func SaltOf(first Event) (string, error) {
	if first.Type != EventStarted {
		return "", Errorf(CodeInvalid, "event %d is %s: the salt of a run's chain stands in its first event, %s", first.Seq, first.Type, EventStarted)
	}
	d, err := decodeData[StartedData](first)
	if err != nil {
		return "", Errorf(CodeInvalid, "the data of event %d (%s): %w", first.Seq, first.Type, err)
	}
	return d.Salt, nil
}

// Batch is what an activity carries to the journal: the events that nobody has
// acknowledged yet, and the hash of the chain before the first of them.
type Batch struct {
	Salt   string  `json:"salt,omitempty"`  // of the run's chain
	First  int64   `json:"first,omitempty"` // seq of Events[0]; 0 where there is none
	Before string  `json:"before,omitempty"`
	Events []Event `json:"events,omitempty"`
	Head   Head    `json:"head"`
	// Acked is the last event that the run knows to be recorded, and Store the identity
	// of the store that said so.
	Acked int64  `json:"acked,omitempty"`
	Store string `json:"store,omitempty"`
}

// Head is the run in a line, as it stands after the last event of a batch. The
// store keeps it as the run's row; it is derived, and in no hash.
type Head struct {
	Status RunStatus `json:"status"`
	Reason string    `json:"reason,omitempty"`
	Phase  string    `json:"phase,omitempty"`
	Turn   int       `json:"turn,omitempty"`
}

// Last is the seq of the batch's last event, 0 where there is none.
func (b Batch) Last() int64 {
	if len(b.Events) == 0 {
		return 0
	}
	return b.Events[len(b.Events)-1].Seq
}

// digest is the hex SHA-256 of a canonical value, cut to 32 digits: 128 bits
// are beyond accident and beyond a search.
func digest(v any) string {
	sum := sha256.Sum256([]byte(mustEncode(v)))
	return hex.EncodeToString(sum[:16])
}

// decodeData reads an event's data into its type. Unknown members are ignored:
// a newer writer may have added some.
func decodeData[T any](e Event) (T, error) {
	var v T
	err := json.Unmarshal(e.Data, &v)
	return v, err
}
