package signals

import "interlock/agent"

// aside are the members of a payload that say who says it, and not what.
var aside = []string{"principal", "token", "trace_id"}

// Said is the digest of what a payload says to a run, whoever says it: a token is
// bound to it. The payload is one of this package's, as it is sent.
func Said(payload agent.JSON) (string, error) {
	said, err := agent.Without(payload, aside...)
	if err != nil {
		return "", err
	}
	return agent.DigestOf(said), nil
}

// ActStart is what a token of a start says is done; of all else, it says the name of
// the signal or update. Relied on by who signs; never rename.
const ActStart = "start"

// StartChain is what a token says in the place of a first run id where there is no
// run yet: it is of the run that the start with this id begins.
func StartChain(id string) string { return "start:" + id }

// Sealed is what a token is checked against: the input of the local activity
// CheckToken.
type Sealed struct {
	Token      string `json:"token"`
	Tenant     string `json:"tenant"`
	Address    string `json:"address"`
	FirstRunID string `json:"first_run_id"`
	Began      string `json:"began,omitempty"` // StartChain of the run's own start, which a token may name instead
	Act        string `json:"act"`
	Said       string `json:"said"`
	ID         string `json:"id"`
	AtMicros   int64  `json:"at"` // of the arrival, in microseconds of Unix time
}

// Believed is the answer: who it is, or why nobody is believed.
type Believed struct {
	Principal agent.Principal `json:"principal"`
	Refused   string          `json:"refused,omitempty"`
}

// ActivityCheckToken is a local activity. Persisted in histories; never rename.
const ActivityCheckToken = "CheckToken"
