-- +goose Up

-- Who looks at which gate, for people: nothing is decided by it.
CREATE TABLE interlock.assignments (
  tenant       text COLLATE "C" NOT NULL,
  address      text COLLATE "C" NOT NULL,
  first_run_id text COLLATE "C" NOT NULL,
  gate         text COLLATE "C" NOT NULL,
  subject      text COLLATE "C" NOT NULL,
  by           text COLLATE "C" NOT NULL,
  at           timestamptz      NOT NULL,
  until        timestamptz      NOT NULL,
  PRIMARY KEY (tenant, address, first_run_id, gate)
);

CREATE INDEX assignments_until ON interlock.assignments (tenant, until);

-- Who is away, and who looks after their gates.
CREATE TABLE interlock.absences (
  tenant  text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  cover   text COLLATE "C" NOT NULL,
  begins  timestamptz      NOT NULL,
  until   timestamptz      NOT NULL,
  by      text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, subject)
);
