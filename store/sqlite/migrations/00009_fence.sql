-- +goose Up

-- A refused effect that was stopped before it began: no attempt of it was or is granted.
ALTER TABLE effects ADD COLUMN fenced INTEGER NOT NULL DEFAULT 0;
