-- +goose Up

-- The order of writing has a column of its own, which stays whatever is done to the
-- file: the feed names its places by it.
--
-- The first statement cannot be done twice, as migrations must begin.
ALTER TABLE events ADD COLUMN id INTEGER;
CREATE TABLE placed_events (
  id            INTEGER PRIMARY KEY,
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
  UNIQUE (tenant, address, first_run_id, seq, branch),
  FOREIGN KEY (tenant, address, first_run_id) REFERENCES runs (tenant, address, first_run_id)
) STRICT;

INSERT INTO placed_events
SELECT rowid, tenant, address, first_run_id, seq, branch, at, type, v, turn, step, trace_id, data, hash, superseded_by
FROM events ORDER BY rowid;

DROP TABLE events;
ALTER TABLE placed_events RENAME TO events;

CREATE UNIQUE INDEX events_live       ON events (tenant, address, first_run_id, seq) WHERE superseded_by = '';
CREATE INDEX        events_superseded ON events (tenant, address, first_run_id, branch) WHERE superseded_by <> '';

-- +goose StatementBegin
CREATE TRIGGER events_append_only BEFORE UPDATE ON events
WHEN OLD.superseded_by <> ''
  OR (OLD.id, OLD.tenant, OLD.address, OLD.first_run_id, OLD.seq, OLD.branch, OLD.at, OLD.type, OLD.v, OLD.turn, OLD.step, OLD.trace_id, OLD.data, OLD.hash)
  IS NOT (NEW.id, NEW.tenant, NEW.address, NEW.first_run_id, NEW.seq, NEW.branch, NEW.at, NEW.type, NEW.v, NEW.turn, NEW.step, NEW.trace_id, NEW.data, NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'an event never changes; it can only be superseded, once');
END;
-- +goose StatementEnd
