-- +goose Up

-- The store's own identity, one row. The generation rises when what was acknowledged
-- may be gone. place is where the file was when it was last opened.
CREATE TABLE store (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  id         TEXT    NOT NULL,
  generation INTEGER NOT NULL,
  place      TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  probed     INTEGER NOT NULL DEFAULT 0 -- writes that only ask whether there can be any
) STRICT;
INSERT INTO store VALUES (1, lower(hex(randomblob(16))), 1, '', '', 0, 0);

-- The store's generation when the run's first event was recorded; 0: another Temporal
-- run than the chain's first recorded it.
ALTER TABLE runs ADD COLUMN generation INTEGER NOT NULL DEFAULT 1;
