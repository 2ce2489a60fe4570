package token

import (
	"sync"
	"time"
)

// kept is what a file says, read anew where the last look is older than rereads.
// While it cannot be read, that is what is told: nothing is believed by what a file
// said before, so that whoever takes it away, or breaks it, sees that.
type kept[T any] struct {
	read func() (T, error)

	mu   sync.Mutex
	last T
	at   time.Time
}

func (k *kept[T]) get() (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.at.IsZero() && time.Since(k.at) < rereads {
		return k.last, nil
	}
	began := time.Now() // a change while it is read is seen in time, too
	now, err := k.read()
	if err != nil {
		var none T
		return none, err
	}
	k.last, k.at = now, began
	return now, nil
}
