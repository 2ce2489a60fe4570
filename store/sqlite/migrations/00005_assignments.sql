-- +goose Up

-- Who looks at which gate, for people: nothing is decided by it.
CREATE TABLE assignments (
  tenant       TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  first_run_id TEXT    NOT NULL,
  gate         TEXT    NOT NULL,
  subject      TEXT    NOT NULL,
  by           TEXT    NOT NULL,
  at           INTEGER NOT NULL,
  until        INTEGER NOT NULL,
  PRIMARY KEY (tenant, address, first_run_id, gate)
) STRICT, WITHOUT ROWID;

CREATE INDEX assignments_until ON assignments (tenant, until);

-- Who is away, and who looks after their gates.
CREATE TABLE absences (
  tenant  TEXT    NOT NULL,
  subject TEXT    NOT NULL,
  cover   TEXT    NOT NULL,
  begins  INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  by      TEXT    NOT NULL,
  PRIMARY KEY (tenant, subject)
) STRICT, WITHOUT ROWID;
