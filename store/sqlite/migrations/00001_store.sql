-- +goose Up

-- A run in a line, derived from its events; seq and hash are the chain's head.
CREATE TABLE runs (
  tenant       TEXT    NOT NULL,
  address      TEXT    NOT NULL,
  first_run_id TEXT    NOT NULL,
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
  PRIMARY KEY (tenant, address)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_newest ON runs (tenant, started_at, address);
CREATE INDEX runs_status ON runs (tenant, status, started_at, address);
CREATE INDEX runs_user   ON runs (tenant, user, started_at, address);

-- The journal. Superseded rows stay; one live row a seq.
CREATE TABLE events (
  tenant        TEXT    NOT NULL,
  address       TEXT    NOT NULL,
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
  PRIMARY KEY (tenant, address, seq, branch),
  FOREIGN KEY (tenant, address) REFERENCES runs (tenant, address)
) STRICT;

CREATE UNIQUE INDEX events_live       ON events (tenant, address, seq) WHERE superseded_by = '';
CREATE INDEX        events_superseded ON events (tenant, address, branch) WHERE superseded_by <> '';

-- +goose StatementBegin
CREATE TRIGGER events_append_only BEFORE UPDATE ON events
WHEN OLD.superseded_by <> ''
  OR (OLD.tenant, OLD.address, OLD.seq, OLD.branch, OLD.at, OLD.type, OLD.v, OLD.turn, OLD.step, OLD.trace_id, OLD.data, OLD.hash)
  IS NOT (NEW.tenant, NEW.address, NEW.seq, NEW.branch, NEW.at, NEW.type, NEW.v, NEW.turn, NEW.step, NEW.trace_id, NEW.data, NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'an event never changes; it can only be superseded, once');
END;
-- +goose StatementEnd

-- A gate as its events say; data is all of it, opened and closed are their seqs.
CREATE TABLE gates (
  tenant     TEXT    NOT NULL,
  address    TEXT    NOT NULL,
  gate       TEXT    NOT NULL,
  opened     INTEGER NOT NULL,
  closed     INTEGER,
  status     TEXT    NOT NULL,
  roles      TEXT    NOT NULL,
  opened_at  INTEGER NOT NULL,
  expires_at INTEGER,
  data       TEXT    NOT NULL,
  PRIMARY KEY (tenant, address, gate),
  FOREIGN KEY (tenant, address) REFERENCES runs (tenant, address)
) STRICT, WITHOUT ROWID;

CREATE INDEX gates_status ON gates (tenant, status, opened_at);

-- The ledger.
CREATE TABLE effects (
  tenant      TEXT    NOT NULL,
  key         TEXT    NOT NULL,
  address     TEXT    NOT NULL,
  scope       TEXT    NOT NULL,
  agent       TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  tool        TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  step        TEXT    NOT NULL,
  ordinal     INTEGER NOT NULL,
  args        TEXT    NOT NULL,
  status      TEXT    NOT NULL DEFAULT 'claimed' CHECK (status IN ('claimed', 'applied', 'refused')),
  result      TEXT,
  whole_ref   TEXT,
  whole_bytes INTEGER,
  reason      TEXT    NOT NULL DEFAULT '',
  attempts    INTEGER NOT NULL DEFAULT 1,
  released    INTEGER NOT NULL DEFAULT 0 CHECK (released <= attempts),
  unknown     INTEGER NOT NULL DEFAULT 0,
  claimed_at  INTEGER NOT NULL,
  settled_at  INTEGER,
  PRIMARY KEY (tenant, key)
) STRICT;

CREATE INDEX effects_address ON effects (tenant, address, claimed_at);

-- +goose StatementBegin
CREATE TRIGGER effects_settled BEFORE UPDATE ON effects
WHEN OLD.status <> 'claimed'
BEGIN
  SELECT RAISE(ABORT, 'a settled effect never changes');
END;
-- +goose StatementEnd

-- nth is 1 for the answer that stands; the others were billed without being used.
CREATE TABLE model_calls (
  tenant        TEXT    NOT NULL,
  key           TEXT    NOT NULL,
  nth           INTEGER NOT NULL,
  address       TEXT    NOT NULL,
  turn          INTEGER NOT NULL,
  model         TEXT    NOT NULL,
  instructions  TEXT    NOT NULL,
  input         INTEGER NOT NULL,
  cache_read    INTEGER NOT NULL,
  cache_write   INTEGER NOT NULL,
  output        INTEGER NOT NULL,
  reasoning     INTEGER NOT NULL,
  request_bytes INTEGER NOT NULL,
  answer        TEXT    NOT NULL,
  at            INTEGER NOT NULL,
  PRIMARY KEY (tenant, key, nth)
) STRICT;

CREATE INDEX model_calls_address ON model_calls (tenant, address, at);

CREATE TABLE blobs (
  tenant    TEXT    NOT NULL,
  ref       TEXT    NOT NULL,
  data      BLOB    NOT NULL,
  stored_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, ref)
) STRICT;

-- Workers serve every tenant, so this table alone has none.
CREATE TABLE deployments (
  agent       TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  fingerprint TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (agent, version)
) STRICT, WITHOUT ROWID;
