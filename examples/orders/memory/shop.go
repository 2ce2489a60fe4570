// Package memory is a shop to try the agent with. It forgets all when its process
// ends; a real one is a client of the product's own services.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/orders"
	"interlock/agent"
	"interlock/tool"
)

// Shop implements [orders.Shop]. The zero value is ready to use.
type Shop struct {
	Today func() time.Time // nil: time.Now

	mu      sync.Mutex
	changes map[tool.Key]orders.Changed
	notices map[tool.Key]orders.Notified
}

var _ orders.Shop = (*Shop)(nil)

// CheckDay asks 25.00 for a Saturday, 4.90 for other days, and refuses Sundays and
// what is past. A model does not know what day it is: the refusal tells it.
func (s *Shop) CheckDay(_ context.Context, w orders.Wish) (orders.Quote, error) {
	day, err := time.Parse(time.DateOnly, w.Day)
	if err != nil {
		return orders.Quote{}, tool.Refused(fmt.Errorf("%q is no day: write it as 2026-04-03", w.Day))
	}
	if today := s.today(); w.Day < today.Format(time.DateOnly) {
		return orders.Quote{}, tool.Refused(fmt.Errorf("%s is past: today is %s", w.Day, today.Format("Monday, 2006-01-02")))
	}
	fee := agent.Money{Minor: 4_90, Currency: "EUR"}
	switch day.Weekday() {
	case time.Sunday:
		return orders.Quote{}, tool.Refused(errors.New("nobody delivers on a Sunday"))
	case time.Saturday:
		fee.Minor = 25_00
	}
	return orders.Quote{Fee: fee}, nil
}

func (s *Shop) today() time.Time {
	if s.Today == nil {
		return time.Now()
	}
	return s.Today()
}

// ChangeDay makes each change once.
func (s *Shop) ChangeDay(_ context.Context, key tool.Key, c orders.Change) (orders.Changed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = map[tool.Key]orders.Changed{}
	}
	if _, done := s.changes[key]; !done {
		s.changes[key] = orders.Changed{ID: fmt.Sprintf("ch-%s-%d", c.OrderID, len(s.changes)+1)}
	}
	return s.changes[key], nil
}

// Notify counts each notice once.
func (s *Shop) Notify(_ context.Context, key tool.Key, _ orders.Notice) (orders.Notified, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notices == nil {
		s.notices = map[tool.Key]orders.Notified{}
	}
	if _, done := s.notices[key]; !done {
		s.notices[key] = orders.Notified{ID: fmt.Sprintf("n-%d", len(s.notices)+1)}
	}
	return s.notices[key], nil
}
