package rules

import "interlock/agent"

// CheckSchema refuses a database whose schema this program does not know, and,
// where it may not migrate, one that is behind. have is 0 where there is none.
func CheckSchema(have, want int64, noMigrate bool) error {
	switch {
	case have > want:
		return agent.Errorf(agent.CodeInvalid, "the database has schema version %d and this program knows %d: this database was made by a newer Interlock, which must be used", have, want)
	case have < want && noMigrate && have == 0:
		return agent.Errorf(agent.CodeUnavailable, "the database is empty and this program needs schema version %d; run interlock migrate to make it", want)
	case have < want && noMigrate:
		return agent.Errorf(agent.CodeUnavailable, "the database has schema version %d and this program needs %d; run interlock migrate to bring it up to date", have, want)
	}
	return nil
}
