package rules

import (
	"time"

	"interlock/agent"
	"interlock/store"
)

// AssignedTo refuses an assignment in whose place another stands.
func AssignedTo(a store.Assignment) error {
	return agent.Errorf(agent.CodeConflict, "%s looks at gate %s until %s", a.Subject, a.Gate, a.Until.UTC().Format(time.RFC3339))
}

// NotAssigned refuses the end of an assignment that there is not.
func NotAssigned(gate, subject string) error {
	return agent.Errorf(agent.CodeNotFound, "%s does not look at gate %s", subject, gate)
}

// NotAbsent refuses the end of an absence that there is not.
func NotAbsent(subject string) error {
	return agent.Errorf(agent.CodeNotFound, "%s is not away", subject)
}
