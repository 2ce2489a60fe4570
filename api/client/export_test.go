package client

import "time"

// Hurry makes a client's pauses short, for tests.
func Hurry(silence time.Duration) Option {
	return func(c *Client) { c.pause, c.silence = pauses{time.Millisecond, 5 * time.Millisecond}, silence }
}

var RetryAfter = retryAfter

// Pause is how long a client waits after an attempt.
func (c *Client) Pause(err error, tries int) (time.Duration, bool) { return c.pause.after(err, tries) }
