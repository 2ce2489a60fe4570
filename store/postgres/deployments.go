package postgres

import (
	"context"
	"fmt"
	"time"

	"interlock/agent"
	"interlock/store"
)

const upsertDeployment = `INSERT INTO interlock.deployments (agent, version, fingerprint, description, at)
VALUES ($1, $2, $3, $4, coalesce($5::timestamptz, clock_timestamp()))
ON CONFLICT (agent, version) DO UPDATE SET fingerprint = excluded.fingerprint, description = excluded.description, at = excluded.at`

// Deployed implements [store.Deployments].
func (s *Store) Deployed(ctx context.Context, d store.Deployment) error {
	operation := fmt.Sprintf("deployment of %s/v%d", d.Agent, d.Version)
	if err := store.CheckNamed("agent", d.Agent); err != nil {
		return fail(operation, err)
	}
	if err := store.CheckText("fingerprint", d.Fingerprint, "description", string(d.Description)); err != nil {
		return fail(operation, err)
	}
	at := s.clock()
	if !d.At.IsZero() {
		at = &d.At
	}
	return s.write(ctx, operation, func(t *transaction) error {
		t.exec(upsertDeployment, d.Agent, d.Version, d.Fingerprint, string(d.Description), at)
		return nil
	})
}

// Deployment implements [store.Deployments].
func (s *Store) Deployment(ctx context.Context, agentName string, version int) (d store.Deployment, err error) {
	found := false
	err = s.read(ctx, fmt.Sprintf("deployment of %s/v%d", agentName, version),
		`SELECT agent, version, fingerprint, description, at FROM interlock.deployments WHERE agent = $1 AND version = $2`, []any{agentName, version},
		func(r row) error {
			var at time.Time
			var description string
			err := r.Scan(&d.Agent, &d.Version, &d.Fingerprint, &description, &at)
			d.At, found = at.UTC(), true
			if description != "" {
				d.Description = agent.JSON(description)
			}
			return err
		})
	if err == nil && !found {
		return d, agent.Errorf(agent.CodeNotFound, "no worker has served %s/v%d", agentName, version)
	}
	return d, err
}

// AllDeployed implements [store.Deployments].
func (s *Store) AllDeployed(ctx context.Context) (all []store.Deployment, err error) {
	err = s.read(ctx, "list of deployments", `SELECT agent, version, fingerprint, at FROM interlock.deployments ORDER BY agent, version`, nil,
		func(r row) error {
			var d store.Deployment
			var at time.Time
			err := r.Scan(&d.Agent, &d.Version, &d.Fingerprint, &at)
			d.At = at.UTC()
			all = append(all, d)
			return err
		})
	return all, err
}
