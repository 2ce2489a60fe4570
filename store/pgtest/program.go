package pgtest

// StartForProgram starts a server for a program that is no test, such as a
// benchmark, or uses that of INTERLOCK_TEST_POSTGRES. dsn is an empty database on
// it; stop drops it, and ends and deletes the server. Where there is no PostgreSQL
// the error says so, and what to do.
func StartForProgram(settings ...string) (dsn string, stop func(), err error) {
	const name = "interlock_program"
	if dsn := existing(); dsn != "" {
		name := name + "_" + unique()
		if err := create(dsn, name, empty); err != nil {
			return "", nil, err
		}
		return withDatabase(dsn, name), func() { drop(dsn, name) }, nil
	}
	s, err := initialize(settings)
	if err != nil {
		return "", nil, err
	}
	if err := create(s.dsn(), name, empty); err != nil {
		s.remove()
		return "", nil, err
	}
	return withDatabase(s.dsn(), name), s.remove, nil
}
