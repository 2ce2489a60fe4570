-- +goose Up

-- The definition as JSON; '' where the worker was older than this.
ALTER TABLE deployments ADD COLUMN description TEXT NOT NULL DEFAULT '';
