-- +goose Up

-- Attempts that may have had their effect: one that certainly had none has no
-- row. deadline and released of effects are derived from them.
CREATE TABLE interlock.effect_attempts (
  tenant   text COLLATE "C" NOT NULL,
  key      text COLLATE "C" NOT NULL,
  n        bigint           NOT NULL,
  at       timestamptz      NOT NULL,
  deadline timestamptz      NOT NULL,
  branch   text COLLATE "C" NOT NULL,
  reason   text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, key, n),
  FOREIGN KEY (tenant, key) REFERENCES interlock.effects (tenant, key)
);

-- Which attempts were released was not known: the latest are taken for open.
INSERT INTO interlock.effect_attempts (tenant, key, n, at, deadline, branch)
SELECT tenant, key, n, attempt_at, coalesce(deadline, attempt_at), ''
FROM interlock.effects, generate_series(released + 1, attempts) n;

ALTER TABLE interlock.effects
  ADD COLUMN began_at    timestamptz, -- of the latest attempt, by the clock that orders them
  ADD COLUMN resolved_by text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN doubt_at    timestamptz,
  ADD COLUMN undone_at   timestamptz,
  ADD COLUMN undone_by   text COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX effects_claimed ON interlock.effects (tenant, claimed_at);
CREATE INDEX effects_open    ON interlock.effects (tenant) WHERE status = 'claimed';

DROP TRIGGER effects_settled ON interlock.effects;
CREATE TRIGGER effects_settled BEFORE UPDATE ON interlock.effects FOR EACH ROW
WHEN (OLD.status <> 'claimed' AND (OLD.status <> 'applied' OR OLD.undone_at IS NOT NULL
  OR (OLD.id, OLD.tenant, OLD.key, OLD.address, OLD.scope, OLD.agent, OLD.version, OLD.tool, OLD.kind, OLD.step, OLD.ordinal, OLD.args, OLD.status, OLD.result,
    OLD.whole_ref, OLD.whole_bytes, OLD.reason, OLD.attempts, OLD.released, OLD.unknown, OLD.claimed_at, OLD.attempt_at, OLD.began_at, OLD.deadline, OLD.settled_at,
    OLD.resolved_by, OLD.doubt_at)
  IS DISTINCT FROM (NEW.id, NEW.tenant, NEW.key, NEW.address, NEW.scope, NEW.agent, NEW.version, NEW.tool, NEW.kind, NEW.step, NEW.ordinal, NEW.args, NEW.status, NEW.result,
    NEW.whole_ref, NEW.whole_bytes, NEW.reason, NEW.attempts, NEW.released, NEW.unknown, NEW.claimed_at, NEW.attempt_at, NEW.began_at, NEW.deadline, NEW.settled_at,
    NEW.resolved_by, NEW.doubt_at)))
EXECUTE FUNCTION interlock.refuse('a settled effect never changes; one that happened can only be undone, once');

-- What keeps effects from starting. '' matches all; a released hold stays as a
-- record.
CREATE TABLE interlock.holds (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant      text COLLATE "C" NOT NULL,
  agent       text COLLATE "C" NOT NULL,
  tool        text COLLATE "C" NOT NULL,
  by          text COLLATE "C" NOT NULL,
  reason      text COLLATE "C" NOT NULL,
  at          timestamptz      NOT NULL,
  released_by text COLLATE "C" NOT NULL DEFAULT '',
  released_at timestamptz
);

CREATE UNIQUE INDEX holds_standing ON interlock.holds (tenant, agent, tool) WHERE released_at IS NULL;
