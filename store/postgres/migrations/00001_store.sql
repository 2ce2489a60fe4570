-- +goose Up

-- Text is compared by its bytes: the same order, and the same indexes, whatever
-- the locale of the database or the version of the system's library.

-- A run in a line, derived from its events; seq and hash are the chain's head.
-- Several chains can follow one another at one address; nth counts them from 1,
-- and the last is the one that stands there.
CREATE TABLE interlock.runs (
  tenant       text COLLATE "C" NOT NULL,
  address      text COLLATE "C" NOT NULL,
  first_run_id text COLLATE "C" NOT NULL,
  nth          bigint           NOT NULL,
  agent        text COLLATE "C" NOT NULL,
  version      bigint           NOT NULL,
  key          text COLLATE "C" NOT NULL,
  "user"       text COLLATE "C" NOT NULL,
  body         text COLLATE "C" NOT NULL,
  seq          bigint           NOT NULL,
  hash         text COLLATE "C" NOT NULL,
  status       text COLLATE "C" NOT NULL,
  reason       text COLLATE "C" NOT NULL,
  phase        text COLLATE "C" NOT NULL,
  turn         bigint           NOT NULL,
  started_at   timestamptz      NOT NULL,
  updated_at   timestamptz      NOT NULL,
  ended_at     timestamptz,
  PRIMARY KEY (tenant, address, first_run_id)
) WITH (fillfactor = 70); -- each append changes a row: there is room for it on its page

CREATE UNIQUE INDEX runs_nth ON interlock.runs (tenant, address, nth);
CREATE INDEX runs_newest ON interlock.runs (tenant, started_at, address, first_run_id);
CREATE INDEX runs_status ON interlock.runs (tenant, status, started_at, address, first_run_id);
CREATE INDEX runs_user   ON interlock.runs (tenant, "user", started_at, address, first_run_id);

-- +goose StatementBegin
CREATE FUNCTION interlock.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = TG_ARGV[0];
END
$$;
-- +goose StatementEnd

-- The journal. Superseded rows stay; one live row a seq. id is the order of
-- writing. Data is text: it is read back byte for byte, which jsonb is not.
CREATE TABLE interlock.events (
  id            bigint GENERATED ALWAYS AS IDENTITY,
  tenant        text COLLATE "C" NOT NULL,
  address       text COLLATE "C" NOT NULL,
  first_run_id  text COLLATE "C" NOT NULL,
  seq           bigint           NOT NULL,
  branch        text COLLATE "C" NOT NULL,
  at            timestamptz      NOT NULL,
  type          text COLLATE "C" NOT NULL,
  v             bigint           NOT NULL,
  turn          bigint           NOT NULL,
  step          text COLLATE "C" NOT NULL,
  trace_id      text COLLATE "C" NOT NULL,
  data          text COLLATE "C" NOT NULL,
  hash          text COLLATE "C" NOT NULL,
  superseded_by text COLLATE "C" NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, address, first_run_id, seq, branch),
  FOREIGN KEY (tenant, address, first_run_id) REFERENCES interlock.runs (tenant, address, first_run_id)
);

CREATE UNIQUE INDEX events_live       ON interlock.events (tenant, address, first_run_id, seq) WHERE superseded_by = '';
CREATE INDEX        events_superseded ON interlock.events (tenant, address, first_run_id, branch) WHERE superseded_by <> '';

CREATE TRIGGER events_append_only BEFORE UPDATE ON interlock.events FOR EACH ROW
WHEN (OLD.superseded_by <> ''
  OR (OLD.id, OLD.tenant, OLD.address, OLD.first_run_id, OLD.seq, OLD.branch, OLD.at, OLD.type, OLD.v, OLD.turn, OLD.step, OLD.trace_id, OLD.data, OLD.hash)
  IS DISTINCT FROM (NEW.id, NEW.tenant, NEW.address, NEW.first_run_id, NEW.seq, NEW.branch, NEW.at, NEW.type, NEW.v, NEW.turn, NEW.step, NEW.trace_id, NEW.data, NEW.hash))
EXECUTE FUNCTION interlock.refuse('an event never changes; it can only be superseded, once');

-- A gate as its events say; data is all of it, opened and closed are their seqs.
CREATE TABLE interlock.gates (
  tenant       text COLLATE "C"   NOT NULL,
  address      text COLLATE "C"   NOT NULL,
  first_run_id text COLLATE "C"   NOT NULL,
  gate         text COLLATE "C"   NOT NULL,
  opened       bigint             NOT NULL,
  closed       bigint,
  status       text COLLATE "C"   NOT NULL,
  roles        text[] COLLATE "C" NOT NULL,
  opened_at    timestamptz        NOT NULL,
  expires_at   timestamptz,
  data         text COLLATE "C"   NOT NULL,
  PRIMARY KEY (tenant, address, first_run_id, gate),
  FOREIGN KEY (tenant, address, first_run_id) REFERENCES interlock.runs (tenant, address, first_run_id)
);

CREATE INDEX gates_status ON interlock.gates (tenant, status, opened_at);

-- The ledger. deadline is the latest attempt's, NULL when that is known to have
-- ended.
CREATE TABLE interlock.effects (
  id          bigint GENERATED ALWAYS AS IDENTITY,
  tenant      text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  address     text COLLATE "C" NOT NULL,
  scope       text COLLATE "C" NOT NULL,
  agent       text COLLATE "C" NOT NULL,
  version     bigint           NOT NULL,
  tool        text COLLATE "C" NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  step        text COLLATE "C" NOT NULL,
  ordinal     bigint           NOT NULL,
  args        text COLLATE "C" NOT NULL,
  status      text COLLATE "C" NOT NULL DEFAULT 'claimed' CHECK (status IN ('claimed', 'applied', 'refused')),
  result      text COLLATE "C",
  whole_ref   text COLLATE "C",
  whole_bytes bigint,
  reason      text COLLATE "C" NOT NULL DEFAULT '',
  attempts    bigint           NOT NULL DEFAULT 1,
  released    bigint           NOT NULL DEFAULT 0 CHECK (released <= attempts),
  unknown     boolean          NOT NULL DEFAULT false,
  claimed_at  timestamptz      NOT NULL,
  attempt_at  timestamptz      NOT NULL,
  deadline    timestamptz,
  settled_at  timestamptz,
  PRIMARY KEY (tenant, key)
);

CREATE INDEX effects_address ON interlock.effects (tenant, address, claimed_at, id);

CREATE TRIGGER effects_settled BEFORE UPDATE ON interlock.effects FOR EACH ROW
WHEN (OLD.status <> 'claimed')
EXECUTE FUNCTION interlock.refuse('a settled effect never changes');

-- nth is 1 for the answer that stands; the others were billed without being used.
CREATE TABLE interlock.model_calls (
  tenant        text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL,
  nth           bigint           NOT NULL,
  address       text COLLATE "C" NOT NULL,
  turn          bigint           NOT NULL,
  model         text COLLATE "C" NOT NULL,
  instructions  text COLLATE "C" NOT NULL,
  input         bigint           NOT NULL,
  cache_read    bigint           NOT NULL,
  cache_write   bigint           NOT NULL,
  output        bigint           NOT NULL,
  reasoning     bigint           NOT NULL,
  request_bytes bigint           NOT NULL,
  answer        text COLLATE "C" NOT NULL,
  at            timestamptz      NOT NULL,
  PRIMARY KEY (tenant, key, nth)
);

CREATE INDEX model_calls_address ON interlock.model_calls (tenant, address, at);

CREATE TABLE interlock.blobs (
  tenant    text COLLATE "C" NOT NULL,
  ref       text COLLATE "C" NOT NULL,
  data      bytea            NOT NULL,
  stored_at timestamptz      NOT NULL,
  PRIMARY KEY (tenant, ref)
);

-- A part of a blob is read without the rest, which compression would not allow.
ALTER TABLE interlock.blobs ALTER COLUMN data SET STORAGE EXTERNAL;

-- Workers serve every tenant, so this table alone has none.
CREATE TABLE interlock.deployments (
  agent       text COLLATE "C" NOT NULL,
  version     bigint           NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  at          timestamptz      NOT NULL,
  PRIMARY KEY (agent, version)
);
