-- +goose Up

-- The latest attempt of an effect, and when its time is up; deadline is NULL
-- when the attempt is known to have ended.
--
-- It stands first: a column cannot be added twice, so that of two processes that
-- migrate at once the later one fails here, with nothing changed.
ALTER TABLE effects ADD COLUMN attempt_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE effects ADD COLUMN deadline INTEGER;
DROP TRIGGER effects_settled;
UPDATE effects SET attempt_at = claimed_at;
-- +goose StatementBegin
CREATE TRIGGER effects_settled BEFORE UPDATE ON effects
WHEN OLD.status <> 'claimed'
BEGIN
  SELECT RAISE(ABORT, 'a settled effect never changes');
END;
-- +goose StatementEnd

-- Several chains can follow one another at one address; nth counts them from 1,
-- and the last is the one that stands there.
CREATE TABLE chained_runs (
  tenant       TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  first_run_id TEXT    NOT NULL,
  nth          INTEGER NOT NULL,
  agent        TEXT    NOT NULL,
  version      INTEGER NOT NULL,
  key          TEXT    NOT NULL,
  user         TEXT    NOT NULL,
  body         TEXT    NOT NULL,
  seq          INTEGER NOT NULL,
  hash         TEXT    NOT NULL,
  status       TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  phase        TEXT    NOT NULL,
  turn         INTEGER NOT NULL,
  started_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  ended_at     INTEGER,
  touched      INTEGER NOT NULL DEFAULT 0, -- acknowledgements that had nothing else to write
  PRIMARY KEY (tenant, address, first_run_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE chained_events (
  tenant        TEXT    NOT NULL,
  address       TEXT    NOT NULL,
  first_run_id  TEXT    NOT NULL,
  seq           INTEGER NOT NULL,
  branch        TEXT    NOT NULL,
  at            INTEGER NOT NULL,
  type          TEXT    NOT NULL,
  v             INTEGER NOT NULL,
  turn          INTEGER NOT NULL,
  step          TEXT    NOT NULL,
  trace_id      TEXT    NOT NULL,
  data          TEXT    NOT NULL,
  hash          TEXT    NOT NULL,
  superseded_by TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, address, first_run_id, seq, branch),
  FOREIGN KEY (tenant, address, first_run_id) REFERENCES chained_runs (tenant, address, first_run_id)
) STRICT;

CREATE TABLE chained_gates (
  tenant       TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  first_run_id TEXT    NOT NULL,
  gate         TEXT    NOT NULL,
  opened       INTEGER NOT NULL,
  closed       INTEGER,
  status       TEXT    NOT NULL,
  roles        TEXT    NOT NULL,
  opened_at    INTEGER NOT NULL,
  expires_at   INTEGER,
  data         TEXT    NOT NULL,
  PRIMARY KEY (tenant, address, first_run_id, gate),
  FOREIGN KEY (tenant, address, first_run_id) REFERENCES chained_runs (tenant, address, first_run_id)
) STRICT, WITHOUT ROWID;

INSERT INTO chained_runs
SELECT tenant, address, first_run_id, 1, agent, version, key, user, body, seq, hash, status, reason, phase, turn,
  started_at, updated_at, ended_at, touched
FROM runs;

-- In the order in which they were written, which tells the branches' order.
INSERT INTO chained_events
SELECT e.tenant, e.address, r.first_run_id, e.seq, e.branch, e.at, e.type, e.v, e.turn, e.step, e.trace_id, e.data, e.hash, e.superseded_by
FROM events e JOIN runs r ON r.tenant = e.tenant AND r.address = e.address
ORDER BY e.rowid;

INSERT INTO chained_gates
SELECT g.tenant, g.address, r.first_run_id, g.gate, g.opened, g.closed, g.status, g.roles, g.opened_at, g.expires_at, g.data
FROM gates g JOIN runs r ON r.tenant = g.tenant AND r.address = g.address;

DROP TABLE gates;
DROP TABLE events;
DROP TABLE runs;
ALTER TABLE chained_runs RENAME TO runs;
ALTER TABLE chained_events RENAME TO events;
ALTER TABLE chained_gates RENAME TO gates;

CREATE UNIQUE INDEX runs_nth ON runs (tenant, address, nth);
CREATE INDEX runs_newest ON runs (tenant, started_at, address, first_run_id);
CREATE INDEX runs_status ON runs (tenant, status, started_at, address, first_run_id);
CREATE INDEX runs_user   ON runs (tenant, user, started_at, address, first_run_id);

CREATE UNIQUE INDEX events_live       ON events (tenant, address, first_run_id, seq) WHERE superseded_by = '';
CREATE INDEX        events_superseded ON events (tenant, address, first_run_id, branch) WHERE superseded_by <> '';

-- +goose StatementBegin
CREATE TRIGGER events_append_only BEFORE UPDATE ON events
WHEN OLD.superseded_by <> ''
  OR (OLD.tenant, OLD.address, OLD.first_run_id, OLD.seq, OLD.branch, OLD.at, OLD.type, OLD.v, OLD.turn, OLD.step, OLD.trace_id, OLD.data, OLD.hash)
  IS NOT (NEW.tenant, NEW.address, NEW.first_run_id, NEW.seq, NEW.branch, NEW.at, NEW.type, NEW.v, NEW.turn, NEW.step, NEW.trace_id, NEW.data, NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'an event never changes; it can only be superseded, once');
END;
-- +goose StatementEnd

CREATE INDEX gates_status ON gates (tenant, status, opened_at);
