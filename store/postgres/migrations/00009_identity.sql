-- +goose Up

-- The store's own identity, one row. The generation rises when what was acknowledged
-- may be gone. place is the cluster and timeline that were last written to.
CREATE TABLE interlock.store (
  one        bigint PRIMARY KEY CHECK (one = 1),
  id         text COLLATE "C" NOT NULL,
  generation bigint           NOT NULL,
  place      text COLLATE "C" NOT NULL,
  reason     text COLLATE "C" NOT NULL,
  at         timestamptz,
  probed     bigint           NOT NULL DEFAULT 0 -- writes that only ask whether there can be any
) WITH (fillfactor = 50);
INSERT INTO interlock.store VALUES (1, replace(gen_random_uuid()::text, '-', ''), 1, '', '', NULL);

-- The store's generation when the run's first event was recorded; 0: another Temporal
-- run than the chain's first recorded it.
ALTER TABLE interlock.runs ADD COLUMN generation bigint NOT NULL DEFAULT 1;
