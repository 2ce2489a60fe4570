-- +goose Up

-- How far who reads the feed has come. Readers serve every tenant.
CREATE TABLE places (
  reader TEXT PRIMARY KEY,
  place  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Notices that a target did not get.
CREATE TABLE dead_notices (
  n            INTEGER PRIMARY KEY,
  tenant       TEXT    NOT NULL,
  id           TEXT    NOT NULL,
  target       TEXT    NOT NULL,
  kind         TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  first_run_id TEXT    NOT NULL,
  notice       TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  retry        INTEGER NOT NULL,
  buried_at    INTEGER NOT NULL,
  ended        TEXT    NOT NULL DEFAULT '',
  ended_by     TEXT    NOT NULL DEFAULT '',
  ended_at     INTEGER,
  UNIQUE (tenant, id, target)
) STRICT;

CREATE INDEX dead_notices_waiting ON dead_notices (tenant, n) WHERE ended = '';

-- +goose StatementBegin
CREATE TRIGGER dead_notices_ended BEFORE UPDATE ON dead_notices WHEN OLD.ended <> ''
BEGIN
  SELECT RAISE(ABORT, 'a dead notice that was settled never changes');
END;
-- +goose StatementEnd
