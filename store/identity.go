package store

import (
	"context"
	"fmt"
	"time"
)

// Identities tell one store, and one life of it, from another.
type Identities interface {
	// Identity is the store's own, as its database has it now.
	Identity(ctx context.Context) (Identity, error)
	// Acknowledges is the identity under which the latest append of this process was
	// acknowledged, or the store was opened; it asks no database.
	Acknowledges() string
	// Restored raises the generation: the database was brought back from a copy, which
	// may lack what was acknowledged after it was made.
	Restored(ctx context.Context, reason string) (Identity, error)
	// Probe writes, and waits for the disk as an append does: an error says why the store
	// takes no writes. It waits for no lock longer than half a second.
	Probe(ctx context.Context) error
}

// Identity is a store's own. The generation rises when an operator says that a copy
// was restored, when the database is found in another place (SQLite: another file;
// PostgreSQL: another cluster or timeline), and when a run knows of acknowledged
// events that the journal does not have.
type Identity struct {
	ID         string    `json:"id"` // random, made anew for each generation
	Generation int64     `json:"generation"`
	Place      string    `json:"place,omitempty"`  // where the database was when it was last looked at
	Reason     string    `json:"reason,omitempty"` // why the generation was raised last
	At         time.Time `json:"at,omitzero"`      // when
}

// String is what acknowledgements and batches carry.
func (i Identity) String() string { return fmt.Sprintf("%s/%d", i.ID, i.Generation) }
