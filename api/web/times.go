package web

import (
	"fmt"
	"time"
)

// moment is a point in time as a page shows it: exact for machines, absolute for
// the record, and relative for whoever has to hurry.
type moment struct{ ISO, Abs, Rel, Clock string }

func (v *visit) moment(t time.Time) moment {
	m := moment{ISO: t.UTC().Format(time.RFC3339), Abs: t.UTC().Format("2006-01-02 15:04:05 MST"), Clock: t.UTC().Format("15:04 MST")}
	if d := t.Sub(v.now); d > 0 {
		m.Rel = "in " + lasting(d)
	} else {
		m.Rel = lasting(-d) + " ago"
	}
	return m
}

func (v *visit) momentOf(t *time.Time) *moment {
	if t == nil {
		return nil
	}
	m := v.moment(*t)
	return &m
}

// lasting is a duration in the two units that matter.
func lasting(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 10*time.Hour && int(d.Minutes())%60 != 0:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours())/24)
}
