-- +goose Up

-- A refused effect that was stopped before it began: no attempt of it was or is granted.
ALTER TABLE interlock.effects ADD COLUMN fenced boolean NOT NULL DEFAULT false;
