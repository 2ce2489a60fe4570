package activities

import (
	"context"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/activity"

	"interlock/store"
)

// A piece that is told has no more than pieceSize bytes, and text waits no longer
// than pieceAfter for more of it, as long as more comes.
const (
	pieceSize  = 1 << 10
	pieceAfter = 100 * time.Millisecond
)

// pieces tells the text of an answer while it is received, to whoever watches.
type pieces struct {
	tell func(store.Delta)
	now  func() time.Time
	next store.Delta
	told time.Time // when the last piece was
}

// piecesOf are those of a turn's answer, of this attempt.
func (a *Activities) piecesOf(ctx context.Context, ref store.RunRef, turn int) *pieces {
	return &pieces{tell: a.Store.Tell, now: time.Now, next: store.Delta{Tenant: ref.Tenant, Address: ref.Address, FirstRunID: ref.FirstRunID,
		Turn: turn, Attempt: int(activity.GetInfo(ctx).Attempt)}}
}

func (p *pieces) add(text string) {
	p.next.Text += text
	if len(p.next.Text) >= pieceSize || p.now().Sub(p.told) >= pieceAfter {
		p.flush()
	}
}

// flush tells what waits.
func (p *pieces) flush() {
	for p.next.Text != "" {
		n := len(p.next.Text)
		if n > pieceSize {
			for n = pieceSize; n > 0 && !utf8.RuneStart(p.next.Text[n]); n-- {
			}
		}
		rest := p.next.Text[n:]
		p.next.N, p.next.Text = p.next.N+1, p.next.Text[:n]
		p.tell(p.next)
		p.next.Text, p.told = rest, p.now()
	}
}
