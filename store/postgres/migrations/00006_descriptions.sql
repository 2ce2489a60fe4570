-- +goose Up

-- The definition as JSON; '' where the worker was older than this.
ALTER TABLE interlock.deployments ADD COLUMN description text COLLATE "C" NOT NULL DEFAULT '';
