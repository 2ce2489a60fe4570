package access

import "time"

// SetNow gives it another clock.
func SetNow(o *OIDC, now func() time.Time) { o.now = now }
