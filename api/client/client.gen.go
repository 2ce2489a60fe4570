// Code generated from api/openapi.json by github.com/oapi-codegen/oapi-codegen/v2 v2.8.2 (make openapi). DO NOT EDIT.

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Defines values for Code.
const (
	CodeConflict              Code = "conflict"
	CodeDenied                Code = "denied"
	CodeEnded                 Code = "ended"
	CodeGateClosed            Code = "gate_closed"
	CodeIdempotencyKeyMissing Code = "idempotency_key_missing"
	CodeInternal              Code = "internal"
	CodeInvalid               Code = "invalid"
	CodeMalformed             Code = "malformed"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeNotFound              Code = "not_found"
	CodeRateLimited           Code = "rate_limited"
	CodeStale                 Code = "stale"
	CodeTooLarge              Code = "too_large"
	CodeUnauthenticated       Code = "unauthenticated"
	CodeUnavailable           Code = "unavailable"
	CodeUnknownAgent          Code = "unknown_agent"
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
)

// Defines values for VerdictValue.
const (
	VerdictValueAnswer       VerdictValue = "answer"
	VerdictValueApprove      VerdictValue = "approve"
	VerdictValueDidNotHappen VerdictValue = "did_not_happen"
	VerdictValueEdit         VerdictValue = "edit"
	VerdictValueHappened     VerdictValue = "happened"
	VerdictValueReject       VerdictValue = "reject"
	VerdictValueReturn       VerdictValue = "return"
	VerdictValueTakeBack     VerdictValue = "take_back"
)

// Absence defines model for Absence.
type Absence struct {
	By      string    `json:"by"`
	Cover   string    `json:"cover"`
	From    time.Time `json:"from"`
	Subject string    `json:"subject"`
	Until   time.Time `json:"until"`
}

// AbsenceBody defines model for AbsenceBody.
type AbsenceBody struct {
	// Cover who stands in; it gives them no role
	Cover string `json:"cover"`

	// From none: now
	From time.Time `json:"from,omitempty,omitzero"`

	// Subject an operator may say it for others; none: the caller
	Subject string    `json:"subject,omitempty,omitzero"`
	Until   time.Time `json:"until"`
}

// AbsenceList defines model for AbsenceList.
type AbsenceList struct {
	Absences []Absence `json:"absences"`
}

// AmendBody defines model for AmendBody.
type AmendBody struct {
	AsUser string `json:"as_user,omitempty,omitzero"`

	// Fields an object: each field's new value, whole; null sets its zero value
	Fields json.RawMessage `json:"fields"`
	Reason string          `json:"reason,omitempty,omitzero"`
}

// Answer defines model for Answer.
type Answer struct {
	Confirm *bool `json:"confirm,omitempty"`

	// Fields any JSON value; numbers keep every digit
	Fields json.RawMessage `json:"fields,omitempty,omitzero"`
}

// AnswerBody defines model for AnswerBody.
type AnswerBody struct {
	// Confirm whether the values shown are right
	Confirm *bool `json:"confirm,omitempty"`

	// Fields an object of the fields that the question asks for
	Fields json.RawMessage `json:"fields,omitempty,omitzero"`
}

// Approval defines model for Approval.
type Approval struct {
	At       time.Time `json:"at"`
	By       Principal `json:"by"`
	Reason   string    `json:"reason,omitempty,omitzero"`
	Verified bool      `json:"verified"`
}

// AssignBody defines model for AssignBody.
type AssignBody struct {
	Minutes int64 `json:"minutes,omitempty,omitzero"`

	// To a colleague, to whom it is handed over; none: the caller
	To string `json:"to,omitempty,omitzero"`
}

// Assigned defines model for Assigned.
type Assigned struct {
	At time.Time `json:"at"`

	// By who said so: the same, where they took it themself
	By string `json:"by"`

	// For who is away, and whom they stand in for
	For   string    `json:"for,omitempty,omitzero"`
	To    string    `json:"to"`
	Until time.Time `json:"until"`
}

// AssignedGate defines model for AssignedGate.
type AssignedGate struct {
	Address  string    `json:"address"`
	Assigned *Assigned `json:"assigned,omitempty"`
	Gate     string    `json:"gate"`
}

// Before defines model for Before.
type Before struct {
	Fields map[string]Was `json:"fields,omitempty,omitzero"`
	Phase  *PhaseWas      `json:"phase,omitempty"`
}

// Bill defines model for Bill.
type Bill struct {
	Calls int64 `json:"calls"`

	// Twice of them, those whose answer was not used
	Twice int64 `json:"twice"`
	Usage Usage `json:"usage"`
}

// Blob defines model for Blob.
type Blob struct {
	Bytes int64  `json:"bytes"`
	Ref   string `json:"ref"`
}

// Budget defines model for Budget.
type Budget struct {
	Active     int64 `json:"active"`
	ModelCalls int64 `json:"model_calls"`
	Refusals   int64 `json:"refusals"`
	SameCall   int64 `json:"same_call"`
	Tokens     int64 `json:"tokens"`
	ToolErrors int64 `json:"tool_errors"`
	Turns      int64 `json:"turns"`
}

// Cancel defines model for Cancel.
type Cancel struct {
	Principal Principal `json:"principal"`
	Reason    string    `json:"reason,omitempty,omitzero"`
	Seq       int64     `json:"seq"`
	Undo      string    `json:"undo,omitempty,omitzero"`
}

// CancelBody defines model for CancelBody.
type CancelBody struct {
	AsUser string `json:"as_user,omitempty,omitzero"`
	Reason string `json:"reason,omitempty,omitzero"`

	// Undo one of none, turn, run
	Undo string `json:"undo,omitempty,omitzero"`
}

// Confirmation defines model for Confirmation.
type Confirmation struct {
	How     string `json:"how"`
	Quote   string `json:"quote"`
	Seq     int64  `json:"seq"`
	Showing int64  `json:"showing,omitempty,omitzero"`
	Step    string `json:"step,omitempty,omitzero"`
	Turn    int64  `json:"turn"`
}

// Conversed defines model for Conversed.
type Conversed struct {
	Address    string  `json:"address"`
	FirstRunID string  `json:"first_run_id"`
	New        bool    `json:"new"`
	Receipt    Receipt `json:"receipt"`
}

// Cutting defines model for Cutting.
type Cutting struct {
	By    Principal `json:"by"`
	Steps []string  `json:"steps,omitempty,omitzero"`
	Turn  int64     `json:"turn"`
	Undo  string    `json:"undo,omitempty,omitzero"`
}

// DecidedGate defines model for DecidedGate.
type DecidedGate struct {
	Address string  `json:"address"`
	ID      string  `json:"id"`
	Receipt Receipt `json:"receipt"`
}

// EffectLine defines model for EffectLine.
type EffectLine struct {
	Address string `json:"address"`
	Agent   string `json:"agent"`

	// Args any JSON value; numbers keep every digit
	Args     json.RawMessage `json:"args,omitempty,omitzero"`
	Attempts int64           `json:"attempts"`

	// By the person who found out
	By        string    `json:"by,omitempty,omitzero"`
	ClaimedAt time.Time `json:"claimed_at"`

	// DoubtAt since when a person must say whether it happened
	DoubtAt time.Time `json:"doubt_at,omitempty,omitzero"`
	Effect  string    `json:"effect"`
	Key     string    `json:"key"`

	// Reason why it was refused, or why nobody knows, or how a person found out
	Reason string `json:"reason,omitempty,omitzero"`

	// Result any JSON value; numbers keep every digit
	Result    json.RawMessage `json:"result,omitempty,omitzero"`
	SettledAt time.Time       `json:"settled_at,omitempty,omitzero"`
	State     string          `json:"state"`
	Step      string          `json:"step"`
	Tool      string          `json:"tool"`
	UndoneAt  time.Time       `json:"undone_at,omitempty,omitzero"`
	Version   int64           `json:"version"`
}

// EffectPage defines model for EffectPage.
type EffectPage struct {
	Effects []EffectLine `json:"effects"`

	// NextPageToken absent on the last page
	NextPageToken string `json:"next_page_token,omitempty,omitzero"`
}

// Escalation defines model for Escalation.
type Escalation struct {
	At    time.Time `json:"at"`
	Done  bool      `json:"done,omitempty,omitzero"`
	Roles []string  `json:"roles"`
}

// Event defines model for Event.
type Event struct {
	At time.Time `json:"at"`

	// Data any JSON value; numbers keep every digit
	Data    json.RawMessage `json:"data"`
	Seq     int64           `json:"seq"`
	Step    string          `json:"step,omitempty,omitzero"`
	Tenant  string          `json:"tenant"`
	TraceID string          `json:"trace_id,omitempty,omitzero"`
	Turn    int64           `json:"turn,omitempty,omitzero"`
	Type    string          `json:"type"`
	V       int64           `json:"v"`
}

// EventPage defines model for EventPage.
type EventPage struct {
	// After the seq of the last event here: the next page's after
	After  int64   `json:"after"`
	Events []Event `json:"events"`

	// More there are more events now
	More bool `json:"more"`
}

// Exported defines model for Exported.
type Exported struct {
	Events []Event `json:"events"`
	Run    Run     `json:"run"`
}

// Fact defines model for Fact.
type Fact struct {
	Quote string `json:"quote"`
	Seq   int64  `json:"seq"`
	Turn  int64  `json:"turn"`
}

// FirstMessage defines model for FirstMessage.
type FirstMessage struct {
	Text string `json:"text"`
}

// Gate defines model for Gate.
type Gate struct {
	Approvals []Approval `json:"approvals,omitempty,omitzero"`

	// Args any JSON value; numbers keep every digit
	Args       json.RawMessage `json:"args"`
	Askers     []string        `json:"askers,omitempty,omitzero"`
	By         *Principal      `json:"by,omitempty"`
	ClosedAt   time.Time       `json:"closed_at,omitempty,omitzero"`
	Digest     string          `json:"digest"`
	Distinct   bool            `json:"distinct,omitempty,omitzero"`
	Edit       []string        `json:"edit,omitempty,omitzero"`
	Escalation *Escalation     `json:"escalation,omitempty"`
	ExpiresAt  time.Time       `json:"expires_at,omitempty,omitzero"`
	ID         string          `json:"id"`
	Kind       string          `json:"kind"`
	OpenedAt   time.Time       `json:"opened_at"`
	Pending    *PendingVerdict `json:"pending,omitempty"`
	Policy     string          `json:"policy,omitempty,omitzero"`
	Quorum     int64           `json:"quorum,omitempty,omitzero"`
	Reads      []string        `json:"reads,omitempty,omitzero"`
	Reason     string          `json:"reason,omitempty,omitzero"`
	Replaces   string          `json:"replaces,omitempty,omitzero"`
	Risk       string          `json:"risk,omitempty,omitzero"`
	Roles      []string        `json:"roles,omitempty,omitzero"`
	Rulings    []string        `json:"rulings,omitempty,omitzero"`

	// Schema any JSON value; numbers keep every digit
	Schema   json.RawMessage            `json:"schema,omitempty,omitzero"`
	Seq      int64                      `json:"seq,omitempty,omitzero"`
	Shown    map[string]json.RawMessage `json:"shown,omitempty,omitzero"`
	Status   string                     `json:"status"`
	Step     string                     `json:"step,omitempty,omitzero"`
	TakeBack int64                      `json:"take_back,omitempty,omitzero"`
	Title    string                     `json:"title"`
	Tool     string                     `json:"tool"`
	Verdict  string                     `json:"verdict,omitempty,omitzero"`
	Verified bool                       `json:"verified"`
}

// GateLine defines model for GateLine.
type GateLine struct {
	Address    string    `json:"address"`
	Agent      string    `json:"agent"`
	Assigned   *Assigned `json:"assigned,omitempty"`
	FirstRunID string    `json:"first_run_id,omitempty,omitzero"`
	Gate       Gate      `json:"gate"`
	Key        string    `json:"key"`

	// Misleading what its texts hold that does not show as what it is: show those characters escaped, and say so
	Misleading []string `json:"misleading,omitempty,omitzero"`
}

// GateOutcome defines model for GateOutcome.
type GateOutcome struct {
	At     time.Time `json:"at,omitempty,omitzero"`
	By     string    `json:"by,omitempty,omitzero"`
	ID     string    `json:"id"`
	Status string    `json:"status"`
}

// GatePage defines model for GatePage.
type GatePage struct {
	Gates []GateLine `json:"gates"`

	// NextPageToken absent on the last page
	NextPageToken string `json:"next_page_token,omitempty,omitzero"`
}

// Granted defines model for Granted.
type Granted struct {
	ActiveMs   int64 `json:"active_ms,omitempty,omitzero"`
	ModelCalls int64 `json:"model_calls,omitempty,omitzero"`
	Tokens     int64 `json:"tokens,omitempty,omitzero"`
	Turns      int64 `json:"turns,omitempty,omitzero"`
}

// Handled defines model for Handled.
type Handled struct {
	Body string `json:"body"`
	By   string `json:"by"`
	Code string `json:"code,omitempty,omitzero"`
	ID   string `json:"id"`
	Seq  int64  `json:"seq"`
	Took *Took  `json:"took,omitempty"`
}

// Idle defines model for Idle.
type Idle struct {
	Close  int64 `json:"close,omitempty,omitzero"`
	Remind int64 `json:"remind,omitempty,omitzero"`
}

// Item defines model for Item.
type Item struct {
	By     string   `json:"by,omitempty,omitzero"`
	Fields []string `json:"fields,omitempty,omitzero"`
	ID     string   `json:"id,omitempty,omitzero"`
	Kind   string   `json:"kind"`
	Seq    int64    `json:"seq"`
	Step   string   `json:"step,omitempty,omitzero"`
	Text   string   `json:"text"`
	Undo   string   `json:"undo,omitempty,omitzero"`
}

// Left defines model for Left.
type Left struct {
	ModelCalls int64 `json:"model_calls,omitempty,omitzero"`
	Tokens     int64 `json:"tokens,omitempty,omitzero"`
	Turns      int64 `json:"turns,omitempty,omitzero"`
}

// Lift defines model for Lift.
type Lift struct {
	At     time.Time `json:"at"`
	By     Principal `json:"by"`
	Reason string    `json:"reason"`
}

// LiftBody defines model for LiftBody.
type LiftBody struct {
	// Reason it is recorded, and the model is told
	Reason string `json:"reason"`
}

// Limits defines model for Limits.
type Limits struct {
	Active       int64  `json:"active"`
	Batch        int64  `json:"batch"`
	Budget       Budget `json:"budget"`
	Facts        int64  `json:"facts"`
	Handled      int64  `json:"handled"`
	History      int64  `json:"history,omitempty,omitzero"`
	HistoryBytes int64  `json:"history_bytes,omitempty,omitzero"`
	Idle         *Idle  `json:"idle,omitempty"`
	Message      int64  `json:"message"`
	Outage       int64  `json:"outage,omitempty,omitzero"`
	Result       int64  `json:"result"`
	Rulings      int64  `json:"rulings"`
	Shown        int64  `json:"shown"`
	Snapshot     int64  `json:"snapshot"`
	State        int64  `json:"state"`
	View         int64  `json:"view"`
	Window       int64  `json:"window"`
}

// MessageBody defines model for MessageBody.
type MessageBody struct {
	AsUser string `json:"as_user,omitempty,omitzero"`

	// Policy what the message does while the run is busy; none: the agent's own; one of queue, reject, interrupt, rollback
	Policy string `json:"policy,omitempty,omitzero"`
	Text   string `json:"text"`
}

// News defines model for News.
type News struct {
	Again  bool   `json:"again,omitempty,omitzero"`
	Gates  []Gate `json:"gates,omitempty,omitzero"`
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty,omitzero"`
	Reply  *Reply `json:"reply,omitempty"`
	Seq    int64  `json:"seq"`
	Status string `json:"status"`
}

// Pending defines model for Pending.
type Pending struct {
	Attempt  int64     `json:"attempt"`
	Deadline time.Time `json:"deadline,omitempty,omitzero"`
	Failure  string    `json:"failure,omitempty,omitzero"`
	Kind     string    `json:"kind,omitempty,omitzero"`
	LastAt   time.Time `json:"last_at,omitempty,omitzero"`
	NextAt   time.Time `json:"next_at,omitempty,omitzero"`
	Paused   bool      `json:"paused,omitempty,omitzero"`
	Running  bool      `json:"running,omitempty,omitzero"`
	Type     string    `json:"type"`
}

// PendingVerdict defines model for PendingVerdict.
type PendingVerdict struct {
	At       time.Time `json:"at"`
	By       Principal `json:"by"`
	Reason   string    `json:"reason,omitempty,omitzero"`
	Until    time.Time `json:"until"`
	Verdict  string    `json:"verdict"`
	Verified bool      `json:"verified"`
}

// PhaseWas defines model for PhaseWas.
type PhaseWas struct {
	Final bool   `json:"final,omitempty,omitzero"`
	Name  string `json:"name"`
	Seq   int64  `json:"seq"`
}

// Place defines model for Place.
type Place struct {
	// Location such as body.args or query.page_size
	Location string `json:"location"`
	Message  string `json:"message"`
}

// Principal defines model for Principal.
type Principal struct {
	Auth    string   `json:"auth,omitempty,omitzero"`
	Roles   []string `json:"roles,omitempty,omitzero"`
	Subject string   `json:"subject"`
	Tenant  string   `json:"tenant,omitempty,omitzero"`
}

// Problem defines model for Problem.
type Problem struct {
	// Code what kind of mistake it is; stable, clients decide on it
	Code Code `json:"code"`

	// Detail what was wrong here, and what to do
	Detail string `json:"detail,omitempty,omitzero"`

	// Errors what is wrong where in the request
	Errors []Place      `json:"errors,omitempty,omitzero"`
	Gate   *GateOutcome `json:"gate,omitempty"`

	// Instance the request's id, as in X-Request-Id and in the log
	Instance string `json:"instance,omitempty,omitzero"`
	Status   int64  `json:"status"`

	// Title what the code means
	Title string `json:"title"`

	// Type urn:interlock:problem: and the code; stable
	Type string `json:"type"`
}

// Code what kind of mistake it is; stable, clients decide on it
type Code string

// Proposal defines model for Proposal.
type Proposal struct {
	ActiveMs     int64          `json:"active_ms,omitempty,omitzero"`
	Calls        []ProposedCall `json:"calls,omitempty,omitzero"`
	Excess       int64          `json:"excess,omitempty,omitzero"`
	Finish       string         `json:"finish"`
	Instructions string         `json:"instructions,omitempty,omitzero"`
	Model        string         `json:"model,omitempty,omitzero"`

	// Opaque any JSON value; numbers keep every digit
	Opaque json.RawMessage `json:"opaque,omitempty,omitzero"`
	Text   string          `json:"text,omitempty,omitzero"`
	Usage  *Usage          `json:"usage,omitempty"`
}

// ProposedCall defines model for ProposedCall.
type ProposedCall struct {
	// Args any JSON value; numbers keep every digit
	Args       json.RawMessage `json:"args,omitempty,omitzero"`
	ID         string          `json:"id"`
	ProviderID string          `json:"provider_id,omitempty,omitzero"`
	Raw        string          `json:"raw,omitempty,omitzero"`
	Read       *Read           `json:"read,omitempty"`
	Status     string          `json:"status,omitempty,omitzero"`
	Step       string          `json:"step,omitempty,omitzero"`
	Text       string          `json:"text,omitempty,omitzero"`
	Tool       string          `json:"tool"`
}

// Provenance defines model for Provenance.
type Provenance struct {
	By         string    `json:"by,omitempty,omitzero"`
	Rev        int64     `json:"rev"`
	Source     string    `json:"source"`
	Step       string    `json:"step,omitempty,omitzero"`
	Turn       int64     `json:"turn,omitempty,omitzero"`
	VerifiedAt time.Time `json:"verified_at,omitempty,omitzero"`
}

// Read defines model for Read.
type Read struct {
	Offset int64  `json:"offset"`
	Step   string `json:"step"`
}

// ReasonBody defines model for ReasonBody.
type ReasonBody struct {
	Reason string `json:"reason,omitempty,omitzero"`
}

// Receipt defines model for Receipt.
type Receipt struct {
	Code   string       `json:"code,omitempty,omitzero"`
	Gate   *GateOutcome `json:"gate,omitempty"`
	Reason string       `json:"reason,omitempty,omitzero"`
	Run    string       `json:"run"`
	Seq    int64        `json:"seq,omitempty,omitzero"`
	Status string       `json:"status"`
	Took   *Took        `json:"took,omitempty"`
}

// Repair defines model for Repair.
type Repair struct {
	Address string         `json:"address"`
	At      time.Time      `json:"at"`
	Reason  string         `json:"reason,omitempty,omitzero"`
	Status  string         `json:"status"`
	Steps   []RepairedStep `json:"steps"`
}

// Repaired defines model for Repaired.
type Repaired struct {
	Address    string `json:"address"`
	FirstRunID string `json:"first_run_id"`
}

// RepairedStep defines model for RepairedStep.
type RepairedStep struct {
	Status string `json:"status"`
	Step   string `json:"step"`
	Tool   string `json:"tool"`
}

// Reply defines model for Reply.
type Reply struct {
	Last bool   `json:"last,omitempty,omitzero"`
	Seq  int64  `json:"seq"`
	Text string `json:"text"`
}

// ResolveBody defines model for ResolveBody.
type ResolveBody struct {
	Happened bool `json:"happened"`

	// Reason how they found out
	Reason string `json:"reason"`

	// Result as the tool would have answered it, where it happened
	Result json.RawMessage `json:"result,omitempty,omitzero"`

	// Unchecked take the result although no worker has the agent's version
	Unchecked bool `json:"unchecked,omitempty,omitzero"`
}

// Ruling defines model for Ruling.
type Ruling struct {
	Args   string    `json:"args"`
	At     time.Time `json:"at"`
	By     Principal `json:"by"`
	Draft  bool      `json:"draft,omitempty,omitzero"`
	ID     string    `json:"id"`
	Lifted *Lift     `json:"lifted,omitempty"`
	Reads  []string  `json:"reads,omitempty,omitzero"`
	Reason string    `json:"reason"`
	Seq    int64     `json:"seq,omitempty,omitzero"`
	Title  string    `json:"title"`
	Tool   string    `json:"tool"`
}

// RulingLine defines model for RulingLine.
type RulingLine struct {
	Args   string    `json:"args"`
	At     time.Time `json:"at"`
	By     Principal `json:"by"`
	Draft  bool      `json:"draft,omitempty,omitzero"`
	ID     string    `json:"id"`
	Lifted *Lift     `json:"lifted,omitempty"`
	Reads  []string  `json:"reads,omitempty,omitzero"`
	Reason string    `json:"reason"`
	Seq    int64     `json:"seq,omitempty,omitzero"`
	Status string    `json:"status"`
	Title  string    `json:"title"`
	Tool   string    `json:"tool"`
}

// RulingList defines model for RulingList.
type RulingList struct {
	Address string       `json:"address"`
	Rulings []RulingLine `json:"rulings"`
}

// Run defines model for Run.
type Run struct {
	Agent       string                  `json:"agent"`
	At          time.Time               `json:"at"`
	Autos       int64                   `json:"autos,omitempty,omitzero"`
	Before      *Before                 `json:"before,omitempty"`
	Calling     bool                    `json:"calling,omitempty,omitzero"`
	Cancel      *Cancel                 `json:"cancel,omitempty"`
	Confirmed   map[string]Confirmation `json:"confirmed,omitempty,omitzero"`
	Cut         *Cutting                `json:"cut,omitempty"`
	Due         bool                    `json:"due,omitempty,omitzero"`
	Facts       []Fact                  `json:"facts,omitempty,omitzero"`
	FailedEnd   []string                `json:"failed_end,omitempty,omitzero"`
	Final       bool                    `json:"final,omitempty,omitzero"`
	Fingerprint string                  `json:"fingerprint"`
	FirstRunID  string                  `json:"first_run_id"`
	Gates       []Gate                  `json:"gates,omitempty,omitzero"`
	Gone        int64                   `json:"gone,omitempty,omitzero"`
	Granted     *Granted                `json:"granted,omitempty"`
	Handled     []Handled               `json:"handled,omitempty,omitzero"`
	Hidden      []string                `json:"hidden,omitempty,omitzero"`
	Kept        []Verdict               `json:"kept,omitempty,omitzero"`
	Key         string                  `json:"key"`
	Known       []json.RawMessage       `json:"known,omitempty,omitzero"`
	KnownCut    bool                    `json:"known_cut,omitempty,omitzero"`
	LastWord    bool                    `json:"last_word,omitempty,omitzero"`
	Limits      Limits                  `json:"limits"`
	News        int64                   `json:"news,omitempty,omitzero"`
	NextStep    int64                   `json:"next_step"`
	Opening     []Item                  `json:"opening,omitempty,omitzero"`
	Ordinals    map[string]int64        `json:"ordinals,omitempty,omitzero"`
	Owed        int64                   `json:"owed,omitempty,omitzero"`
	Pending     []Verdict               `json:"pending,omitempty,omitzero"`
	Phase       string                  `json:"phase"`
	PhaseSeq    int64                   `json:"phase_seq"`
	Principal   Principal               `json:"principal"`
	Provenance  map[string]Provenance   `json:"provenance,omitempty,omitzero"`
	Reason      string                  `json:"reason,omitempty,omitzero"`
	Reminded    time.Time               `json:"reminded,omitempty,omitzero"`
	Repairs     *Repaired               `json:"repairs,omitempty"`
	Reply       *Reply                  `json:"reply,omitempty"`
	Rules       int64                   `json:"rules"`
	Rulings     []Ruling                `json:"rulings,omitempty,omitzero"`
	Scope       string                  `json:"scope,omitempty,omitzero"`
	Sensitive   []string                `json:"sensitive,omitempty,omitzero"`
	Seq         int64                   `json:"seq"`
	Shown       map[string]Showing      `json:"shown,omitempty,omitzero"`
	Since       time.Time               `json:"since,omitempty,omitzero"`
	Spoken      bool                    `json:"spoken,omitempty,omitzero"`
	StartedAt   time.Time               `json:"started_at"`

	// State any JSON value; numbers keep every digit
	State   json.RawMessage   `json:"state"`
	Status  string            `json:"status"`
	Steps   []Step            `json:"steps,omitempty,omitzero"`
	Tenant  string            `json:"tenant"`
	Trimmed *Trimmed          `json:"trimmed,omitempty"`
	Turn    int64             `json:"turn"`
	Turns   []Turn            `json:"turns,omitempty,omitzero"`
	Undo    []Undoing         `json:"undo,omitempty,omitzero"`
	Unseen  []json.RawMessage `json:"unseen,omitempty,omitzero"`
	Used    Used              `json:"used"`
	User    string            `json:"user"`
	V       int64             `json:"v"`
	Version int64             `json:"version"`
}

// RunCount defines model for RunCount.
type RunCount struct {
	Agent string `json:"agent"`

	// Reason what their reason begins with, up to its first colon: gate, user, model
	Reason string `json:"reason,omitempty,omitzero"`
	Runs   int64  `json:"runs"`
	Status string `json:"status"`
}

// RunCounts defines model for RunCounts.
type RunCounts struct {
	Counts []RunCount `json:"counts"`
}

// RunLine defines model for RunLine.
type RunLine struct {
	Address    string    `json:"address"`
	Agent      string    `json:"agent"`
	EndedAt    time.Time `json:"ended_at,omitempty,omitzero"`
	FirstRunID string    `json:"first_run_id"`
	Key        string    `json:"key"`
	Phase      string    `json:"phase,omitempty,omitzero"`

	// Reason what it waits for, or why it is paused or ended
	Reason string `json:"reason,omitempty,omitzero"`

	// Seq of its last event
	Seq       int64     `json:"seq"`
	StartedAt time.Time `json:"started_at"`
	Status    string    `json:"status"`
	Turn      int64     `json:"turn"`
	UpdatedAt time.Time `json:"updated_at"`

	// User the subject that the run serves
	User    string `json:"user"`
	Version int64  `json:"version"`
}

// RunPage defines model for RunPage.
type RunPage struct {
	// NextPageToken absent on the last page
	NextPageToken string    `json:"next_page_token,omitempty,omitzero"`
	Runs          []RunLine `json:"runs"`
}

// SentInput defines model for SentInput.
type SentInput struct {
	Address string `json:"address"`

	// ID the Idempotency-Key, which is the input's id in the run
	ID      string  `json:"id"`
	Receipt Receipt `json:"receipt"`
}

// SessionBody defines model for SessionBody.
type SessionBody struct {
	// AsUser who says it, where a backend sends it for a user
	AsUser string `json:"as_user,omitempty,omitzero"`

	// Body the start input of a run that is started
	Body json.RawMessage `json:"body,omitempty,omitzero"`

	// Policy what the message does while the run is busy; none: the agent's own; one of queue, reject, interrupt, rollback
	Policy  string `json:"policy,omitempty,omitzero"`
	Text    string `json:"text"`
	User    string `json:"user,omitempty,omitzero"`
	Version int64  `json:"version,omitempty,omitzero"`
}

// Showing defines model for Showing.
type Showing struct {
	Message int64  `json:"message,omitempty,omitzero"`
	Quote   string `json:"quote,omitempty,omitzero"`
	Seq     int64  `json:"seq"`
}

// ShownRun defines model for ShownRun.
type ShownRun struct {
	Address     string                  `json:"address"`
	Agent       string                  `json:"agent"`
	At          time.Time               `json:"at"`
	Autos       int64                   `json:"autos,omitempty,omitzero"`
	Before      *Before                 `json:"before,omitempty"`
	Bill        *Bill                   `json:"bill,omitempty"`
	Calling     bool                    `json:"calling,omitempty,omitzero"`
	Cancel      *Cancel                 `json:"cancel,omitempty"`
	Confirmed   map[string]Confirmation `json:"confirmed,omitempty,omitzero"`
	Cut         *Cutting                `json:"cut,omitempty"`
	Due         bool                    `json:"due,omitempty,omitzero"`
	Facts       []Fact                  `json:"facts,omitempty,omitzero"`
	FailedEnd   []string                `json:"failed_end,omitempty,omitzero"`
	Final       bool                    `json:"final,omitempty,omitzero"`
	Fingerprint string                  `json:"fingerprint"`
	FirstRunID  string                  `json:"first_run_id"`
	Gates       []Gate                  `json:"gates,omitempty,omitzero"`
	Gone        int64                   `json:"gone,omitempty,omitzero"`
	Granted     *Granted                `json:"granted,omitempty"`
	Handled     []Handled               `json:"handled,omitempty,omitzero"`
	Hidden      []string                `json:"hidden,omitempty,omitzero"`
	Kept        []Verdict               `json:"kept,omitempty,omitzero"`
	Key         string                  `json:"key"`
	Known       []json.RawMessage       `json:"known,omitempty,omitzero"`
	KnownCut    bool                    `json:"known_cut,omitempty,omitzero"`
	LastWord    bool                    `json:"last_word,omitempty,omitzero"`
	Limits      Limits                  `json:"limits"`
	News        int64                   `json:"news,omitempty,omitzero"`
	NextStep    int64                   `json:"next_step"`
	Opening     []Item                  `json:"opening,omitempty,omitzero"`
	Ordinals    map[string]int64        `json:"ordinals,omitempty,omitzero"`
	Owed        int64                   `json:"owed,omitempty,omitzero"`
	Pending     []Verdict               `json:"pending,omitempty,omitzero"`
	Phase       string                  `json:"phase"`
	PhaseSeq    int64                   `json:"phase_seq"`
	Principal   Principal               `json:"principal"`
	Provenance  map[string]Provenance   `json:"provenance,omitempty,omitzero"`
	Reason      string                  `json:"reason,omitempty,omitzero"`
	Reminded    time.Time               `json:"reminded,omitempty,omitzero"`
	Repairs     *Repaired               `json:"repairs,omitempty"`
	Reply       *Reply                  `json:"reply,omitempty"`
	Rules       int64                   `json:"rules"`
	Rulings     []Ruling                `json:"rulings,omitempty,omitzero"`
	Scope       string                  `json:"scope,omitempty,omitzero"`
	Sensitive   []string                `json:"sensitive,omitempty,omitzero"`
	Seq         int64                   `json:"seq"`
	Shown       map[string]Showing      `json:"shown,omitempty,omitzero"`
	Since       time.Time               `json:"since,omitempty,omitzero"`
	Spoken      bool                    `json:"spoken,omitempty,omitzero"`
	StartedAt   time.Time               `json:"started_at"`

	// State any JSON value; numbers keep every digit
	State   json.RawMessage   `json:"state"`
	Status  string            `json:"status"`
	Steps   []Step            `json:"steps,omitempty,omitzero"`
	Tenant  string            `json:"tenant"`
	Trimmed *Trimmed          `json:"trimmed,omitempty"`
	Turn    int64             `json:"turn"`
	Turns   []Turn            `json:"turns,omitempty,omitzero"`
	Undo    []Undoing         `json:"undo,omitempty,omitzero"`
	Unseen  []json.RawMessage `json:"unseen,omitempty,omitzero"`
	Used    Used              `json:"used"`
	User    string            `json:"user"`
	V       int64             `json:"v"`
	Version int64             `json:"version"`

	// Waits what it waits for: since when, until when, for whom
	Waits []Waiting `json:"waits,omitempty,omitzero"`
}

// ShownWhy defines model for ShownWhy.
type ShownWhy struct {
	Activities []Pending `json:"activities,omitempty,omitzero"`
	Address    string    `json:"address"`
	FirstRunID string    `json:"first_run_id,omitempty,omitzero"`

	// Next which command comes next, or what to do
	Next   string `json:"next"`
	Phase  string `json:"phase,omitempty,omitzero"`
	Reason string `json:"reason,omitempty,omitzero"`

	// RepairedBy the runs that undo steps of it, since it has ended
	RepairedBy   []Repair `json:"repaired_by,omitempty,omitzero"`
	Sentence     string   `json:"sentence"`
	Seq          int64    `json:"seq,omitempty,omitzero"`
	Status       string   `json:"status,omitempty,omitzero"`
	TaskFailure  string   `json:"task_failure,omitempty,omitzero"`
	TaskFailures int64    `json:"task_failures,omitempty,omitzero"`
	Turn         int64    `json:"turn,omitempty,omitzero"`

	// Unseen what could not be looked at
	Unseen    []string  `json:"unseen,omitempty,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitempty,omitzero"`
	Waits     []Waiting `json:"waits,omitempty,omitzero"`
}

// Spent defines model for Spent.
type Spent struct {
	Agent string `json:"agent"`

	// At when the step began
	At time.Time `json:"at"`

	// Calls all that were billed
	Calls int64  `json:"calls"`
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
}

// SpentList defines model for SpentList.
type SpentList struct {
	From time.Time `json:"from"`

	// Spent what there was no call of is not in it
	Spent []Spent   `json:"spent"`
	To    time.Time `json:"to"`
}

// StartBody defines model for StartBody.
type StartBody struct {
	Agent string `json:"agent"`

	// AsUser who starts it, where a backend does so for a user
	AsUser string `json:"as_user,omitempty,omitzero"`

	// Body the agent's start input
	Body json.RawMessage `json:"body,omitempty,omitzero"`

	// Key the session, order or ticket that it serves: one run for each. None: it is made of the Idempotency-Key
	Key     string        `json:"key,omitempty,omitzero"`
	Message *FirstMessage `json:"message,omitempty"`

	// User the subject that the run serves; none: who starts it
	User string `json:"user,omitempty,omitzero"`

	// Version none: the newest that is served
	Version int64 `json:"version,omitempty,omitzero"`
}

// Started defines model for Started.
type Started struct {
	Address    string `json:"address"`
	FirstRunID string `json:"first_run_id"`
	New        bool   `json:"new"`
}

// Step defines model for Step.
type Step struct {
	Again    bool  `json:"again,omitempty,omitzero"`
	Archived int64 `json:"archived,omitempty,omitzero"`

	// Args any JSON value; numbers keep every digit
	Args         json.RawMessage `json:"args"`
	Begun        bool            `json:"begun,omitempty,omitzero"`
	By           string          `json:"by"`
	Compensation string          `json:"compensation,omitempty,omitzero"`
	EditedBy     string          `json:"edited_by,omitempty,omitzero"`
	Effect       string          `json:"effect,omitempty,omitzero"`
	ID           string          `json:"id"`
	Key          string          `json:"key,omitempty,omitzero"`
	Kind         string          `json:"kind"`
	Ordinal      int64           `json:"ordinal,omitempty,omitzero"`
	Reason       string          `json:"reason,omitempty,omitzero"`
	Replaces     string          `json:"replaces,omitempty,omitzero"`
	Reserves     []string        `json:"reserves,omitempty,omitzero"`

	// Result any JSON value; numbers keep every digit
	Result   json.RawMessage `json:"result,omitempty,omitzero"`
	RunAt    time.Time       `json:"run_at,omitempty,omitzero"`
	Seq      int64           `json:"seq"`
	Status   string          `json:"status"`
	Stopping *Stopping       `json:"stopping,omitempty"`
	Tool     string          `json:"tool"`
	Turn     int64           `json:"turn"`
	Undoes   string          `json:"undoes,omitempty,omitzero"`
	UndoneBy string          `json:"undone_by,omitempty,omitzero"`
	Whole    *Blob           `json:"whole,omitempty"`
}

// Stopping defines model for Stopping.
type Stopping struct {
	Again      bool   `json:"again,omitempty,omitzero"`
	As         string `json:"as"`
	Reason     string `json:"reason"`
	Unapproved bool   `json:"unapproved,omitempty,omitzero"`
	Undo       bool   `json:"undo,omitempty,omitzero"`
}

// Took defines model for Took.
type Took struct {
	How      string   `json:"how"`
	Stopping []string `json:"stopping,omitempty,omitzero"`
	Turn     int64    `json:"turn,omitempty,omitzero"`
}

// Trimmed defines model for Trimmed.
type Trimmed struct {
	Results int64 `json:"results,omitempty,omitzero"`
	Rulings int64 `json:"rulings,omitempty,omitzero"`
	Steps   int64 `json:"steps,omitempty,omitzero"`
	Turns   int64 `json:"turns,omitempty,omitzero"`
}

// Turn defines model for Turn.
type Turn struct {
	At       time.Time `json:"at"`
	Cut      string    `json:"cut,omitempty,omitzero"`
	N        int64     `json:"n"`
	Opening  []Item    `json:"opening,omitempty,omitzero"`
	Proposal *Proposal `json:"proposal,omitempty"`
	Seq      int64     `json:"seq"`
}

// UndoBody defines model for UndoBody.
type UndoBody struct {
	// Reason the model is told
	Reason string `json:"reason"`

	// Steps such as 3.1: all of them are undone, or none
	Steps []string `json:"steps"`
}

// Undoing defines model for Undoing.
type Undoing struct {
	As     string `json:"as,omitempty,omitzero"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	Stands string `json:"stands,omitempty,omitzero"`
	Step   string `json:"step"`
}

// Undone defines model for Undone.
type Undone struct {
	Receipt Receipt  `json:"receipt"`
	Repair  *Started `json:"repair,omitempty"`
}

// Usage defines model for Usage.
type Usage struct {
	CacheRead  int64 `json:"cache_read,omitempty,omitzero"`
	CacheWrite int64 `json:"cache_write,omitempty,omitzero"`
	Input      int64 `json:"input,omitempty,omitzero"`
	Output     int64 `json:"output,omitempty,omitzero"`
	Reasoning  int64 `json:"reasoning,omitempty,omitzero"`
}

// Used defines model for Used.
type Used struct {
	ActiveMs   int64  `json:"active_ms"`
	LastCall   string `json:"last_call,omitempty,omitzero"`
	ModelCalls int64  `json:"model_calls"`
	Refusals   int64  `json:"refusals,omitempty,omitzero"`
	SameCall   int64  `json:"same_call,omitempty,omitzero"`
	ToolErrors int64  `json:"tool_errors,omitempty,omitzero"`
	Turns      int64  `json:"turns"`
	Usage      *Usage `json:"usage,omitempty"`
}

// Verdict defines model for Verdict.
type Verdict struct {
	Again  bool    `json:"again,omitempty,omitzero"`
	Answer *Answer `json:"answer,omitempty"`

	// Args any JSON value; numbers keep every digit
	Args      json.RawMessage `json:"args,omitempty,omitzero"`
	At        time.Time       `json:"at"`
	Digest    string          `json:"digest"`
	Gate      string          `json:"gate"`
	ID        string          `json:"id"`
	Principal Principal       `json:"principal"`
	Reason    string          `json:"reason,omitempty,omitzero"`

	// Result any JSON value; numbers keep every digit
	Result   json.RawMessage `json:"result,omitempty,omitzero"`
	Verdict  string          `json:"verdict"`
	Verified bool            `json:"verified"`
}

// VerdictBody defines model for VerdictBody.
type VerdictBody struct {
	// Again did_not_happen: run it again
	Again  bool        `json:"again,omitempty,omitzero"`
	Answer *AnswerBody `json:"answer,omitempty"`

	// Args edit: the new arguments, whole
	Args   json.RawMessage `json:"args,omitempty,omitzero"`
	AsUser string          `json:"as_user,omitempty,omitzero"`

	// Digest of the gate as it was shown: if that has changed, the verdict decides nothing
	Digest string `json:"digest"`

	// Reason needed but for approve and answer
	Reason string `json:"reason,omitempty,omitzero"`

	// Result happened: what the tool would have answered
	Result  json.RawMessage `json:"result,omitempty,omitzero"`
	Verdict VerdictValue    `json:"verdict"`
}

// VerdictValue defines model for VerdictBody.verdict.
type VerdictValue string

// View defines model for View.
type View struct {
	Agent      string               `json:"agent"`
	At         time.Time            `json:"at"`
	Earlier    *Trimmed             `json:"earlier,omitempty"`
	Facts      []Fact               `json:"facts,omitempty,omitzero"`
	InDoubt    []string             `json:"in_doubt,omitempty,omitzero"`
	LastWord   bool                 `json:"last_word,omitempty,omitzero"`
	Left       Left                 `json:"left"`
	Limit      int64                `json:"limit"`
	Phase      string               `json:"phase"`
	Provenance map[string]ViewField `json:"provenance,omitempty,omitzero"`
	Rulings    []ViewRuling         `json:"rulings,omitempty,omitzero"`
	Running    []string             `json:"running,omitempty,omitzero"`

	// State any JSON value; numbers keep every digit
	State   json.RawMessage `json:"state"`
	Turn    int64           `json:"turn"`
	Turns   []ViewTurn      `json:"turns,omitempty,omitzero"`
	Version int64           `json:"version"`
	Waiting []ViewGate      `json:"waiting,omitempty,omitzero"`
}

// ViewCall defines model for ViewCall.
type ViewCall struct {
	Answer ViewItem `json:"answer"`

	// Args any JSON value; numbers keep every digit
	Args       json.RawMessage `json:"args"`
	ID         string          `json:"id"`
	ProviderID string          `json:"provider_id,omitempty,omitzero"`
	Read       *Read           `json:"read,omitempty"`
	Tool       string          `json:"tool"`
}

// ViewField defines model for ViewField.
type ViewField struct {
	Confirmed  string    `json:"confirmed,omitempty,omitzero"`
	Shown      bool      `json:"shown,omitempty,omitzero"`
	Source     string    `json:"source"`
	Turn       int64     `json:"turn,omitempty,omitzero"`
	VerifiedAt time.Time `json:"verified_at,omitempty,omitzero"`
}

// ViewGate defines model for ViewGate.
type ViewGate struct {
	Approved  int64     `json:"approved,omitempty,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitempty,omitzero"`
	ID        string    `json:"id"`
	Quorum    int64     `json:"quorum,omitempty,omitzero"`
	Replaces  string    `json:"replaces,omitempty,omitzero"`
	Roles     []string  `json:"roles,omitempty,omitzero"`
	Title     string    `json:"title"`
	Tool      string    `json:"tool"`
}

// ViewItem defines model for ViewItem.
type ViewItem struct {
	Bytes   int64  `json:"bytes,omitempty,omitzero"`
	Omitted bool   `json:"omitted,omitempty,omitzero"`
	Part    string `json:"part,omitempty,omitzero"`

	// Result any JSON value; numbers keep every digit
	Result json.RawMessage `json:"result,omitempty,omitzero"`
	Status string          `json:"status"`
	Step   string          `json:"step,omitempty,omitzero"`
	Text   string          `json:"text,omitempty,omitzero"`
	Tool   string          `json:"tool,omitempty,omitzero"`
}

// ViewRuling defines model for ViewRuling.
type ViewRuling struct {
	Binds  bool     `json:"binds"`
	Draft  bool     `json:"draft,omitempty,omitzero"`
	Lifted bool     `json:"lifted,omitempty,omitzero"`
	Reads  []string `json:"reads,omitempty,omitzero"`
	Reason string   `json:"reason"`
	Title  string   `json:"title"`
	Tool   string   `json:"tool"`
}

// ViewTurn defines model for ViewTurn.
type ViewTurn struct {
	Calls []ViewCall `json:"calls,omitempty,omitzero"`
	Cut   string     `json:"cut,omitempty,omitzero"`
	Model string     `json:"model,omitempty,omitzero"`
	N     int64      `json:"n"`

	// Opaque any JSON value; numbers keep every digit
	Opaque  json.RawMessage `json:"opaque,omitempty,omitzero"`
	Opening []Item          `json:"opening,omitempty,omitzero"`
	Results []ViewItem      `json:"results,omitempty,omitzero"`
	Text    string          `json:"text,omitempty,omitzero"`
}

// Waiting defines model for Waiting.
type Waiting struct {
	For   string    `json:"for"`
	Gate  string    `json:"gate,omitempty,omitzero"`
	Since time.Time `json:"since"`
	Step  string    `json:"step,omitempty,omitzero"`
	Then  string    `json:"then,omitempty,omitzero"`
	Until time.Time `json:"until,omitempty,omitzero"`
	What  string    `json:"what"`
	Who   []string  `json:"who,omitempty,omitzero"`
}

// Was defines model for Was.
type Was struct {
	Provenance *Provenance `json:"provenance,omitempty"`

	// Value any JSON value; numbers keep every digit
	Value json.RawMessage `json:"value,omitempty,omitzero"`
}

// ListEffectsParams defines parameters for ListEffects.
type ListEffectsParams struct {
	// PageSize how many at most
	PageSize int64 `form:"page_size,omitempty" json:"page_size,omitempty,omitzero"`

	// PageToken the next_page_token of the page before
	PageToken string `form:"page_token,omitempty" json:"page_token,omitempty,omitzero"`

	// State one of applied, refused, undone, not_applied, open, in_doubt
	State string `form:"state,omitempty" json:"state,omitempty,omitzero"`
	Agent string `form:"agent,omitempty" json:"agent,omitempty,omitzero"`
	Tool  string `form:"tool,omitempty" json:"tool,omitempty,omitzero"`
}

// ListGatesParams defines parameters for ListGates.
type ListGatesParams struct {
	// PageSize how many at most
	PageSize int64 `form:"page_size,omitempty" json:"page_size,omitempty,omitzero"`

	// PageToken the next_page_token of the page before
	PageToken string `form:"page_token,omitempty" json:"page_token,omitempty,omitzero"`

	// Role only gates that this role may decide
	Role  string `form:"role,omitempty" json:"role,omitempty,omitzero"`
	Agent string `form:"agent,omitempty" json:"agent,omitempty,omitzero"`

	// Status one of open, approved, rejected, returned, edited, answered, resolved, expired, void, withdrawn, any
	Status string `form:"status,omitempty" json:"status,omitempty,omitzero"`

	// OlderThan only gates that were opened so long ago, such as 4h
	OlderThan string `form:"older_than,omitempty" json:"older_than,omitempty,omitzero"`
}

// CountRunsParams defines parameters for CountRuns.
type CountRunsParams struct {
	// EndedHours ended runs of so many hours are counted, too
	EndedHours int64 `form:"ended_hours,omitempty" json:"ended_hours,omitempty,omitzero"`
}

// SumSpentParams defines parameters for SumSpent.
type SumSpentParams struct {
	// By one of hour, day
	By string `form:"by,omitempty" json:"by,omitempty,omitzero"`

	// Steps hours or days, the present one included; in UTC
	Steps int64 `form:"steps,omitempty" json:"steps,omitempty,omitzero"`
}

// ListRunsParams defines parameters for ListRuns.
type ListRunsParams struct {
	// PageSize how many at most
	PageSize int64 `form:"page_size,omitempty" json:"page_size,omitempty,omitzero"`

	// PageToken the next_page_token of the page before
	PageToken string `form:"page_token,omitempty" json:"page_token,omitempty,omitzero"`

	// Agent only runs of this agent
	Agent string `form:"agent,omitempty" json:"agent,omitempty,omitzero"`

	// Status one of running, waiting, paused, completed, cancelled, failed
	Status string `form:"status,omitempty" json:"status,omitempty,omitzero"`

	// Reason what the reason begins with, such as budget:
	Reason string `form:"reason,omitempty" json:"reason,omitempty,omitzero"`

	// User only runs that serve this subject
	User string `form:"user,omitempty" json:"user,omitempty,omitzero"`

	// Key only the runs under this key; with agent
	Key string `form:"key,omitempty" json:"key,omitempty,omitzero"`
}

// GetContextParams defines parameters for GetContext.
type GetContextParams struct {
	// Turn the turn whose model call is shown
	Turn int64 `form:"turn" json:"turn"`
}

// ListEventsParams defines parameters for ListEvents.
type ListEventsParams struct {
	// After the seq of the last event that is known; 0: from the first on
	After int64 `form:"after,omitempty" json:"after,omitempty,omitzero"`

	// PageSize how many at most
	PageSize int64 `form:"page_size,omitempty" json:"page_size,omitempty,omitzero"`
}

// WaitRunParams defines parameters for WaitRun.
type WaitRunParams struct {
	// After the seq up to which everything is known
	After int64 `form:"after,omitempty" json:"after,omitempty,omitzero"`
}

// GetStateParams defines parameters for GetState.
type GetStateParams struct {
	// Seq the event up to which the run is shown
	Seq int64 `form:"seq" json:"seq"`
}

// ListAbsences asks GET /v1/absences: List who is away, and who stands in.
func (c *Client) ListAbsences(ctx context.Context) (*AbsenceList, error) {
	return call[AbsenceList](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/absences")})
}

// SetAbsence asks POST /v1/absences: Say who stands in while somebody is away.
func (c *Client) SetAbsence(ctx context.Context, body AbsenceBody, options ...CallOption) (*Absence, error) {
	return call[Absence](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/absences"), body: body}, options...)
}

// EndAbsence asks POST /v1/absences/{subject}/end: End an absence.
func (c *Client) EndAbsence(ctx context.Context, subject string, options ...CallOption) (*AbsenceList, error) {
	return call[AbsenceList](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/absences/%s/end", subject)}, options...)
}

// ListEffects asks GET /v1/effects: List what the tools have done, oldest first.
func (c *Client) ListEffects(ctx context.Context, params ListEffectsParams) (*EffectPage, error) {
	return call[EffectPage](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/effects"), query: queryOf(
		param{"page_size", params.PageSize, false},
		param{"page_token", params.PageToken, false},
		param{"state", params.State, false},
		param{"agent", params.Agent, false},
		param{"tool", params.Tool, false},
	)})
}

// ResolveEffect asks POST /v1/effects/{key}/resolve: Say what became of an effect in doubt whose run has ended.
func (c *Client) ResolveEffect(ctx context.Context, key string, body ResolveBody, options ...CallOption) (*EffectLine, error) {
	return call[EffectLine](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/effects/%s/resolve", key), body: body}, options...)
}

// ListGates asks GET /v1/gates: List the tenant's gates, oldest first.
func (c *Client) ListGates(ctx context.Context, params ListGatesParams) (*GatePage, error) {
	return call[GatePage](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/gates"), query: queryOf(
		param{"page_size", params.PageSize, false},
		param{"page_token", params.PageToken, false},
		param{"role", params.Role, false},
		param{"agent", params.Agent, false},
		param{"status", params.Status, false},
		param{"older_than", params.OlderThan, false},
	)})
}

// CountRuns asks GET /v1/ops/runs: Count the tenant's runs by agent, status and reason.
func (c *Client) CountRuns(ctx context.Context, params CountRunsParams) (*RunCounts, error) {
	return call[RunCounts](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/ops/runs"), query: queryOf(
		param{"ended_hours", params.EndedHours, false},
	)})
}

// SumSpent asks GET /v1/ops/spent: Sum the tenant's model calls by time, agent and model.
func (c *Client) SumSpent(ctx context.Context, params SumSpentParams) (*SpentList, error) {
	return call[SpentList](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/ops/spent"), query: queryOf(
		param{"by", params.By, false},
		param{"steps", params.Steps, false},
	)})
}

// ListRuns asks GET /v1/runs: List the tenant's runs, newest first.
func (c *Client) ListRuns(ctx context.Context, params ListRunsParams) (*RunPage, error) {
	return call[RunPage](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs"), query: queryOf(
		param{"page_size", params.PageSize, false},
		param{"page_token", params.PageToken, false},
		param{"agent", params.Agent, false},
		param{"status", params.Status, false},
		param{"reason", params.Reason, false},
		param{"user", params.User, false},
		param{"key", params.Key, false},
	)})
}

// StartRun asks POST /v1/runs: Start a run.
func (c *Client) StartRun(ctx context.Context, body StartBody, options ...CallOption) (*Started, error) {
	return call[Started](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs"), body: body}, options...)
}

// GetRun asks GET /v1/runs/{agent}/{key}: Get a run as it stands.
func (c *Client) GetRun(ctx context.Context, agent string, key string) (*ShownRun, error) {
	return call[ShownRun](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s", agent, key)})
}

// AmendRun asks POST /v1/runs/{agent}/{key}/amend: Set fields of a run's state from outside.
func (c *Client) AmendRun(ctx context.Context, agent string, key string, body AmendBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/amend", agent, key), body: body}, options...)
}

// CancelRun asks POST /v1/runs/{agent}/{key}/cancel: End a run.
func (c *Client) CancelRun(ctx context.Context, agent string, key string, body CancelBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/cancel", agent, key), body: body}, options...)
}

// GetContext asks GET /v1/runs/{agent}/{key}/context: Get what the model was shown in a turn.
func (c *Client) GetContext(ctx context.Context, agent string, key string, params GetContextParams) (*View, error) {
	return call[View](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/context", agent, key), query: queryOf(
		param{"turn", params.Turn, true},
	)})
}

// ListEvents asks GET /v1/runs/{agent}/{key}/events: Read a run's journal.
func (c *Client) ListEvents(ctx context.Context, agent string, key string, params ListEventsParams) (*EventPage, error) {
	return call[EventPage](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/events", agent, key), query: queryOf(
		param{"after", params.After, false},
		param{"page_size", params.PageSize, false},
	)})
}

// ExportRun asks GET /v1/runs/{agent}/{key}/export: Get a run and all its events as one file.
func (c *Client) ExportRun(ctx context.Context, agent string, key string) (*Exported, error) {
	return call[Exported](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/export", agent, key)})
}

// GetGate asks GET /v1/runs/{agent}/{key}/gates/{gate}: Get a gate whole.
func (c *Client) GetGate(ctx context.Context, agent string, key string, gate string) (*GateLine, error) {
	return call[GateLine](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/gates/%s", agent, key, gate)})
}

// AssignGate asks POST /v1/runs/{agent}/{key}/gates/{gate}/assign: Take a gate to look at, or hand it over.
func (c *Client) AssignGate(ctx context.Context, agent string, key string, gate string, body AssignBody, options ...CallOption) (*AssignedGate, error) {
	return call[AssignedGate](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/gates/%s/assign", agent, key, gate), body: body}, options...)
}

// UnassignGate asks POST /v1/runs/{agent}/{key}/gates/{gate}/unassign: Let a gate go that was taken.
func (c *Client) UnassignGate(ctx context.Context, agent string, key string, gate string, options ...CallOption) (*AssignedGate, error) {
	return call[AssignedGate](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/gates/%s/unassign", agent, key, gate)}, options...)
}

// DecideGate asks POST /v1/runs/{agent}/{key}/gates/{gate}/verdict: Decide about a gate as it was shown.
func (c *Client) DecideGate(ctx context.Context, agent string, key string, gate string, body VerdictBody, options ...CallOption) (*DecidedGate, error) {
	return call[DecidedGate](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/gates/%s/verdict", agent, key, gate), body: body}, options...)
}

// MessageRun asks POST /v1/runs/{agent}/{key}/messages: Tell a run what the user says.
func (c *Client) MessageRun(ctx context.Context, agent string, key string, body MessageBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/messages", agent, key), body: body}, options...)
}

// WaitRun asks GET /v1/runs/{agent}/{key}/news: Wait for a reply, a gate, a pause or the end.
func (c *Client) WaitRun(ctx context.Context, agent string, key string, params WaitRunParams) (*News, error) {
	return call[News](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/news", agent, key), query: queryOf(
		param{"after", params.After, false},
	)})
}

// PauseRun asks POST /v1/runs/{agent}/{key}/pause: Stop a run until it is resumed.
func (c *Client) PauseRun(ctx context.Context, agent string, key string, body ReasonBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/pause", agent, key), body: body}, options...)
}

// ResumeRun asks POST /v1/runs/{agent}/{key}/resume: Let a paused run go on.
func (c *Client) ResumeRun(ctx context.Context, agent string, key string, body ReasonBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/resume", agent, key), body: body}, options...)
}

// ListRulings asks GET /v1/runs/{agent}/{key}/rulings: List what a run must not do again.
func (c *Client) ListRulings(ctx context.Context, agent string, key string) (*RulingList, error) {
	return call[RulingList](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/rulings", agent, key)})
}

// ConfirmRuling asks POST /v1/runs/{agent}/{key}/rulings/{ruling}/confirm: Make a draft of the model's binding.
func (c *Client) ConfirmRuling(ctx context.Context, agent string, key string, ruling string, body ReasonBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/rulings/%s/confirm", agent, key, ruling), body: body}, options...)
}

// LiftRuling asks POST /v1/runs/{agent}/{key}/rulings/{ruling}/lift: Lift a ruling, or drop the draft of one.
func (c *Client) LiftRuling(ctx context.Context, agent string, key string, ruling string, body LiftBody, options ...CallOption) (*SentInput, error) {
	return call[SentInput](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/rulings/%s/lift", agent, key, ruling), body: body}, options...)
}

// GetState asks GET /v1/runs/{agent}/{key}/state: Get a run as it stood after an event.
func (c *Client) GetState(ctx context.Context, agent string, key string, params GetStateParams) (*ShownRun, error) {
	return call[ShownRun](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/state", agent, key), query: queryOf(
		param{"seq", params.Seq, true},
	)})
}

// UndoRun asks POST /v1/runs/{agent}/{key}/undo: Undo steps that happened.
func (c *Client) UndoRun(ctx context.Context, agent string, key string, body UndoBody, options ...CallOption) (*Undone, error) {
	return call[Undone](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/runs/%s/%s/undo", agent, key), body: body}, options...)
}

// WhyRun asks GET /v1/runs/{agent}/{key}/why: Say what a run waits for, and what to do.
func (c *Client) WhyRun(ctx context.Context, agent string, key string) (*ShownWhy, error) {
	return call[ShownWhy](ctx, c, request{method: http.MethodGet, path: pathOf("/v1/runs/%s/%s/why", agent, key)})
}

// Converse asks POST /v1/sessions/{agent}/{key}/messages: Bring a message to a session's run, or start one.
func (c *Client) Converse(ctx context.Context, agent string, key string, body SessionBody, options ...CallOption) (*Conversed, error) {
	return call[Conversed](ctx, c, request{method: http.MethodPost, path: pathOf("/v1/sessions/%s/%s/messages", agent, key), body: body}, options...)
}
