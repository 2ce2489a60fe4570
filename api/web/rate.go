package web

import (
	"strconv"
	"time"

	"interlock/agent"
	"interlock/api/access"
)

// How often one person may ask for a page, where nothing else is said: as often as at
// the API.
const (
	usualRate  = 20.0
	usualBurst = 40
)

// limited is an error where the caller asks too often.
func (v *visit) limited() error {
	wait := v.rates.Wait(v.caller.Tenant+"\x00"+v.caller.Subject, v.Now())
	if wait <= 0 {
		return nil
	}
	v.w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	return agent.Errorf(access.CodeRateLimited, "you ask more often than is let through, and this was not done: wait a second, and try again")
}
