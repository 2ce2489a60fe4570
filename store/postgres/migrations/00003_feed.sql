-- +goose Up

-- A feed's order must never change, and transactions do not commit in the order in
-- which they take ids: a row counts once all transactions before its own have ended.
ALTER TABLE interlock.events ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX events_feed ON interlock.events (xid, id);
