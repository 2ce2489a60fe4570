package rules

import (
	"strconv"

	"interlock/agent"
	"interlock/store"
)

// Moved refuses the move of a reader that stands elsewhere.
func Moved(reader, from string) error {
	return agent.Errorf(agent.CodeConflict, "reader %s does not stand at %q any more: another process has moved it; read its place again", reader, from)
}

// NoDead says that no such notice is dead.
func NoDead(id, target string) error {
	return agent.Errorf(agent.CodeNotFound, "there is no dead notice %s for target %s", id, target)
}

// DeadEnded refuses to settle a dead notice twice.
func DeadEnded(d store.DeadNotice) error {
	return agent.Errorf(agent.CodeConflict, "notice %s for target %s was %s before, by %s", d.ID, d.Target, d.End, d.EndedBy)
}

// Dead completes the query of a list of dead notices, the tenant's already.
func Dead(q *Query, f store.DeadFilter) error {
	if f.After != "" {
		n, err := strconv.ParseInt(f.After, 10, 64)
		if err != nil || n < 0 {
			return agent.Errorf(agent.CodeInvalid, "%q is no cursor of a list of dead notices", f.After)
		}
		q.And("n > %", n)
	}
	q.Equal("id", f.ID)
	q.Equal("target", f.Target)
	if !f.Ended {
		q.Text += " AND ended = ''"
	}
	q.End("ORDER BY n LIMIT %", PageSize(f.Limit))
	return nil
}
