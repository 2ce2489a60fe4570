// Package store holds the contracts of what is durable outside Temporal: the
// journal of events, the ledger of effects, recorded model calls, blobs, and
// the projections that lists are made from. Drivers are in folders of their
// own and all pass package storetest.
//
// Every method names a tenant, and none ever shows one tenant another's rows.
// Errors carry an [agent.Code]; a driver maps its database's errors by number.
package store

import (
	"context"
	"time"

	"interlock/agent"
)

// Store is all of it, over one database.
type Store interface {
	Journal
	Ledger
	Holds
	ModelCalls
	Blobs
	Reader
	Feed
	Deltas
	Assignments
	Notices
	Deployments
	Overview
	Identities
	Close() error
}

// RunRef names a run in the journal. Branch is the Temporal run id that
// appends: a reset makes a new one under the same FirstRunID.
type RunRef struct {
	Tenant     string
	Address    string // workflow id: <tenant>/<agent>/<key>
	FirstRunID string
	Branch     string
	// Store is the identity that acknowledged the run's latest events when what is done
	// now was scheduled; "" where nothing was acknowledged yet.
	Store string
}

// Journal is the append-only record of every run's events.
type Journal interface {
	// Append commits a batch in one transaction, or none of it. Events that
	// stand already with the same content are acknowledged; new ones are
	// appended. A batch without
	// events changes nothing. One that knows of acknowledged events (Acked) which the
	// journal does not have is refused as [Lost].
	//
	// A row whose hash differs is [Diverged] when it, or any row after it, is of
	// our own branch. It is [Superseded] when our own branch wrote rows before
	// it: then a newer branch has gone on with the run, and a late append of the
	// old one must not undo that. Else the row and all after it are marked
	// superseded (they stay), and the branches that wrote them may never append
	// again ([Superseded], whatever the batch).
	//
	// A gap, or another hash before the batch's first event, is [Diverged], unless
	// that hash is a superseded row's, as after a reset of an older run. Then the
	// superseded rows that lead from a live one to it are appended again as our
	// branch's, where our branch may supersede what stands in their place by the
	// rules above, and the batch follows them.
	//
	// The first append of an address that another chain holds is refused:
	// [KeyUsed] where that chain started with the same body, [Conflict] where
	// it did not. Only a chain whose started event names the chain that
	// stood there last as After follows it (one that was terminated, whose journal
	// has no end, gets one in its row: cancelled); the older chain's rows stay, and
	// nothing can be appended to it any more ([Superseded]). One that names
	// another chain, or one that has not ended, is a [Conflict]. Where nothing
	// stands After does not matter.
	//
	// The run's row and the gates' rows change in the same transaction. The
	// batch's head counts only where the batch reaches the newest event.
	Append(ctx context.Context, ref RunRef, batch agent.Batch) error
	// AppendSoon is Append, by the same rules and seen by everybody at once, but
	// a power cut may take it away until the next durable write of this store has
	// returned. For a caller that makes one before it acknowledges anything.
	AppendSoon(ctx context.Context, ref RunRef, batch agent.Batch) error
}

// Refusal is why the journal does not take a batch. It is an error.
type Refusal struct {
	Kind       RefusalKind
	FirstRunID string // KeyUsed, Conflict: the chain that holds the address
	Seq        int64  // Diverged: the first event of the batch that cannot stand
	Message    string
}

// RefusalKind is the kind of a [Refusal].
type RefusalKind string

const (
	Diverged   RefusalKind = "diverged"
	Superseded RefusalKind = "superseded"
	KeyUsed    RefusalKind = "key_used"
	Conflict   RefusalKind = "conflict"
	Lost       RefusalKind = "lost_events" // Seq is the last event that the journal has
)

func (r *Refusal) Error() string { return string(r.Kind) + ": " + r.Message }

// ModelCalls records answers as soon as a provider has given them, so that a
// retry after that point reuses the answer.
type ModelCalls interface {
	// RecordModelCall stores an answer. Where one stands under the same key it
	// stays, the new one is kept beside it as billed twice, and first is the
	// one that stands.
	RecordModelCall(ctx context.Context, m ModelCall) (first ModelCall, err error)
	// ModelCall is the answer recorded under a key; CodeNotFound where none is.
	ModelCall(ctx context.Context, tenant, key string) (ModelCall, error)
	// ModelUsage sums a run's recorded calls, those billed twice included.
	ModelUsage(ctx context.Context, tenant, address string) (ModelUsage, error)
}

// ModelCall is one answer of a provider.
type ModelCall struct {
	Tenant       string
	Key          string // hex digest of address, branch and turn
	Address      string
	Turn         int
	Model        string
	Instructions string // digest
	Usage        agent.Usage
	RequestBytes int
	Answer       agent.JSON
	At           time.Time
}

// ModelUsage is the bill of a run.
type ModelUsage struct {
	Calls      int // all that were billed
	Twice      int // of them, those billed without being used
	Usage      agent.Usage
	BytesTotal int64 // of all requests
	BytesLast  int   // of the latest
}

// Blobs holds results too large for a run, by content.
type Blobs interface {
	// PutBlob stores bytes and names them by their SHA-256. Storing the same
	// bytes again is no error.
	PutBlob(ctx context.Context, tenant string, data []byte) (agent.Blob, error)
	// GetBlob is a blob's bytes from offset, at most n (n < 0: all);
	// CodeNotFound where there is no such blob.
	GetBlob(ctx context.Context, tenant, ref string, offset, n int) ([]byte, error)
}

// Reader reads the journal and its projections. All of it is committed data;
// none of it decides anything.
type Reader interface {
	// Events are the run's events from seq on (1: all) in order, at most limit
	// (0: all), of the present branch.
	Events(ctx context.Context, run Chain, from int64, limit int) ([]agent.Event, error)
	// Branches tell which Temporal runs wrote the journal, and what of it is
	// superseded, oldest first.
	Branches(ctx context.Context, run Chain) ([]Branch, error)
	// RunRow is the run's row; CodeNotFound where there is none.
	RunRow(ctx context.Context, run Chain) (RunRow, error)
	// RunRows lists runs, newest first, each chain of an address by itself.
	// RunFilter.After is the Cursor of the last row of the page before.
	RunRows(ctx context.Context, tenant string, f RunFilter) ([]RunRow, error)
	// GateRows lists gates, oldest first. GateFilter.After is the Cursor of the last
	// row of the page before.
	GateRows(ctx context.Context, tenant string, f GateFilter) ([]GateRow, error)
}

// Chain names a run to be read. Without FirstRunID it is the one that stands at
// the address now: the newest.
type Chain struct {
	Tenant, Address, FirstRunID string
}

// Branch is what one Temporal run wrote, or made live again.
type Branch struct {
	RunID        string
	First, Last  int64 // seq
	Superseded   int   // events of it that do not count any more
	SupersededBy string
}

// RunRow is a run in a list.
type RunRow struct {
	Tenant, Address, FirstRunID string
	Agent, Key                  string
	Version                     int
	User                        string
	Head                        agent.Head
	Body                        string // digest of the start input
	Seq                         int64
	StartedAt, UpdatedAt        time.Time
	EndedAt                     *time.Time
	Cursor                      string
}

// RunFilter narrows a list of runs. Zero fields do not filter.
type RunFilter struct {
	Agent   string
	Status  agent.RunStatus
	Reason  string // what it begins with: "budget:", "model"
	User    string
	Address string // all chains of one address
	Under   string // what the address begins with
	After   string
	Limit   int // 0: 50; at most 500
}

// GateRow is a gate in a list.
type GateRow struct {
	Address, FirstRunID, Agent string
	Gate                       agent.Gate
	Cursor                     string // its place in a list; "" where it comes from none
}

// GateFilter narrows a list of gates. Zero fields do not filter.
type GateFilter struct {
	Address string // all chains of one address
	Agent   string
	Role    string
	Kind    agent.StepKind
	Status  agent.GateStatus
	Before  time.Time // opened before it
	After   string
	Limit   int // 0: 50; at most 500
}

// Deployments says which agents workers have served from this store, so that
// a mistyped name is refused with the names that exist.
type Deployments interface {
	// Deployed records that a worker serves this agent version now.
	Deployed(ctx context.Context, d Deployment) error
	// Deployment is one of them, with its description; CodeNotFound where no worker has
	// served it.
	Deployment(ctx context.Context, agent string, version int) (Deployment, error)
	// AllDeployed lists them, by agent and version, without their descriptions.
	AllDeployed(ctx context.Context) ([]Deployment, error)
}

// Deployment is an agent version that some worker has served.
type Deployment struct {
	Agent       string
	Version     int
	Fingerprint string
	// Description is the definition as JSON (agent.Description); none where the worker
	// was older than it, and in lists.
	Description agent.JSON
	At          time.Time
}
