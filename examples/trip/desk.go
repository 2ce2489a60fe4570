package trip

import (
	"context"
	"sync"
	"time"

	"interlock/tool"
)

// Desk is the other side of the tools: an airline, a car hire and a site that
// compares hotels, in memory. It dedupes on keys. The zero value is ready.
type Desk struct {
	// Slow is how long the airline and the car hire take.
	Slow time.Duration

	mu      sync.Mutex
	booked  map[tool.Key]Booked
	gone    map[string]bool // released
	begun   int
	changed chan struct{}
}

// Booked is what was booked, reserved, released or found.
type Booked struct {
	ID string `json:"id"`
}

// Flight books a seat. The airline does not stop half way: once asked, it books.
func (d *Desk) Flight(ctx context.Context, key tool.Key, a Where) (Booked, error) {
	d.begin()
	select {
	case <-time.After(d.Slow):
	case <-ctx.Done(): // too late: the airline has been asked
	}
	return d.book(key, "flight "+a.To), nil
}

// Car reserves a car.
func (d *Desk) Car(ctx context.Context, key tool.Key, a Where) (Booked, error) {
	d.begin()
	select {
	case <-time.After(d.Slow):
		return d.book(key, "car in "+a.To), nil
	case <-ctx.Done():
		return Booked{}, tool.NotApplied(ctx.Err())
	}
}

// Hotels compares until it is let go: there are many.
func (d *Desk) Hotels(ctx context.Context, a Where) (Booked, error) {
	d.begin()
	select {
	case <-time.After(20 * d.Slow):
		return Booked{"hotel in " + a.To}, nil
	case <-ctx.Done():
		return Booked{}, ctx.Err()
	}
}

// Release gives a seat back.
func (d *Desk) Release(_ context.Context, key tool.Key, id string) (Booked, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.make()
	d.gone[id] = true
	d.booked[key] = Booked{"release of " + id}
	return d.booked[key], nil
}

// Holds reports whether what has an id is booked and was not given back.
func (d *Desk) Holds(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.booked {
		if b.ID == id {
			return !d.gone[id]
		}
	}
	return false
}

// Busy waits until so many calls have begun.
func (d *Desk) Busy(ctx context.Context, calls int) error {
	for {
		d.mu.Lock()
		d.make()
		begun, changed := d.begun, d.changed
		d.mu.Unlock()
		if begun >= calls {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *Desk) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.make()
	d.begun++
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *Desk) book(key tool.Key, id string) Booked {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.make()
	if _, again := d.booked[key]; !again {
		d.booked[key] = Booked{id}
	}
	return d.booked[key]
}

// make is called with mu held.
func (d *Desk) make() {
	if d.booked == nil {
		d.booked, d.gone, d.changed = map[tool.Key]Booked{}, map[string]bool{}, make(chan struct{})
	}
}
