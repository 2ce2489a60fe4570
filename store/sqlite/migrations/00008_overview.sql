-- +goose Up

-- For what many runs of a tenant are at: those that have ended lately, and what
-- models have taken.
CREATE INDEX runs_ended     ON runs (tenant, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX model_calls_at ON model_calls (tenant, at);
