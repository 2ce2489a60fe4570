-- +goose Up

-- Attempts that may have had their effect: one that certainly had none has no
-- row. deadline and released of effects are derived from them.
CREATE TABLE effect_attempts (
  tenant   TEXT    NOT NULL,
  key      TEXT    NOT NULL,
  n        INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  deadline INTEGER NOT NULL,
  branch   TEXT    NOT NULL,
  reason   TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, key, n),
  FOREIGN KEY (tenant, key) REFERENCES effects (tenant, key)
) STRICT, WITHOUT ROWID;

-- Which attempts were released was not known: the latest are taken for open.
WITH RECURSIVE open (tenant, key, n, attempts, at, deadline) AS (
  SELECT tenant, key, released + 1, attempts, attempt_at, coalesce(deadline, attempt_at) FROM effects WHERE released < attempts
  UNION ALL
  SELECT tenant, key, n + 1, attempts, at, deadline FROM open WHERE n < attempts
)
INSERT INTO effect_attempts (tenant, key, n, at, deadline, branch) SELECT tenant, key, n, at, deadline, '' FROM open;

ALTER TABLE effects ADD COLUMN began_at INTEGER; -- of the latest attempt, by the clock that orders them
ALTER TABLE effects ADD COLUMN resolved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE effects ADD COLUMN doubt_at INTEGER;
ALTER TABLE effects ADD COLUMN undone_at INTEGER;
ALTER TABLE effects ADD COLUMN undone_by TEXT NOT NULL DEFAULT '';

CREATE INDEX effects_claimed ON effects (tenant, claimed_at);
CREATE INDEX effects_open    ON effects (tenant) WHERE status = 'claimed';

DROP TRIGGER effects_settled;
-- +goose StatementBegin
CREATE TRIGGER effects_settled BEFORE UPDATE ON effects
WHEN OLD.status <> 'claimed' AND (OLD.status <> 'applied' OR OLD.undone_at IS NOT NULL
  OR (OLD.tenant, OLD.key, OLD.address, OLD.scope, OLD.agent, OLD.version, OLD.tool, OLD.kind, OLD.step, OLD.ordinal, OLD.args, OLD.status, OLD.result,
    OLD.whole_ref, OLD.whole_bytes, OLD.reason, OLD.attempts, OLD.released, OLD.unknown, OLD.claimed_at, OLD.attempt_at, OLD.began_at, OLD.deadline, OLD.settled_at,
    OLD.resolved_by, OLD.doubt_at)
  IS NOT (NEW.tenant, NEW.key, NEW.address, NEW.scope, NEW.agent, NEW.version, NEW.tool, NEW.kind, NEW.step, NEW.ordinal, NEW.args, NEW.status, NEW.result,
    NEW.whole_ref, NEW.whole_bytes, NEW.reason, NEW.attempts, NEW.released, NEW.unknown, NEW.claimed_at, NEW.attempt_at, NEW.began_at, NEW.deadline, NEW.settled_at,
    NEW.resolved_by, NEW.doubt_at))
BEGIN
  SELECT RAISE(ABORT, 'a settled effect never changes; one that happened can only be undone, once');
END;
-- +goose StatementEnd

-- What keeps effects from starting. '' matches all; a released hold stays as a
-- record.
CREATE TABLE holds (
  tenant      TEXT    NOT NULL,
  agent       TEXT    NOT NULL,
  tool        TEXT    NOT NULL,
  by          TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  released_by TEXT    NOT NULL DEFAULT '',
  released_at INTEGER
) STRICT;

CREATE UNIQUE INDEX holds_standing ON holds (tenant, agent, tool) WHERE released_at IS NULL;
