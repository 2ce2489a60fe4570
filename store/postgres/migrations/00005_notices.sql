-- +goose Up

-- How far who reads the feed has come. Readers serve every tenant.
CREATE TABLE interlock.places (
  reader text COLLATE "C" PRIMARY KEY,
  place  text COLLATE "C" NOT NULL
);

-- Notices that a target did not get.
CREATE TABLE interlock.dead_notices (
  n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant       text COLLATE "C" NOT NULL,
  id           text COLLATE "C" NOT NULL,
  target       text COLLATE "C" NOT NULL,
  kind         text COLLATE "C" NOT NULL,
  address      text COLLATE "C" NOT NULL,
  first_run_id text COLLATE "C" NOT NULL,
  notice       text COLLATE "C" NOT NULL,
  reason       text COLLATE "C" NOT NULL,
  retry        bigint           NOT NULL,
  buried_at    timestamptz      NOT NULL,
  ended        text COLLATE "C" NOT NULL DEFAULT '',
  ended_by     text COLLATE "C" NOT NULL DEFAULT '',
  ended_at     timestamptz,
  UNIQUE (tenant, id, target)
);

CREATE INDEX dead_notices_waiting ON interlock.dead_notices (tenant, n) WHERE ended = '';

CREATE TRIGGER dead_notices_ended BEFORE UPDATE ON interlock.dead_notices FOR EACH ROW
WHEN (OLD.ended <> '') EXECUTE FUNCTION interlock.refuse('a dead notice that was settled never changes');
