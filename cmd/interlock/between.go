package main

import (
	"time"

	"github.com/spf13/cobra"
)

// between are the flags that bound a list of effects in time.
type between struct{ since, until *string }

func betweenFlags(cmd *cobra.Command, how string) between {
	return between{
		cmd.Flags().String("since", "", "only effects "+how+" at this `time` or after: 2026-03-01T09:00:00Z, 2026-03-01 (UTC), or 24h ago"),
		cmd.Flags().String("until", "", "only effects "+how+" before this `time`"),
	}
}

func (b between) times() (since, until time.Time, err error) {
	if since, err = moment("since", *b.since); err != nil {
		return since, until, err
	}
	if until, err = moment("until", *b.until); err != nil {
		return since, until, err
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return since, until, usagef("--since must be before --until")
	}
	return since, until, nil
}

// moment reads a point in time: a time, a day, or how long ago it was.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return time.Now().Add(-ago), nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--%s %q is no time: give one such as 2026-03-01T09:00:00Z, 2026-03-01, or 24h for so long ago", flag, text)
}
