package postgres

import (
	"context"
	"fmt"
	"time"

	"interlock/store"
)

const upsertDeployment = `INSERT INTO interlock.deployments (agent, version, fingerprint, at)
VALUES ($1, $2, $3, coalesce($4::timestamptz, clock_timestamp()))
ON CONFLICT (agent, version) DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at`

// Deployed implements [store.Deployments].
func (s *Store) Deployed(ctx context.Context, d store.Deployment) error {
	operation := fmt.Sprintf("deployment of %s/v%d", d.Agent, d.Version)
	if err := store.CheckNamed("agent", d.Agent); err != nil {
		return fail(operation, err)
	}
	if err := store.CheckText("fingerprint", d.Fingerprint); err != nil {
		return fail(operation, err)
	}
	at := s.clock()
	if !d.At.IsZero() {
		at = &d.At
	}
	return s.write(ctx, operation, func(t *transaction) error {
		t.exec(upsertDeployment, d.Agent, d.Version, d.Fingerprint, at)
		return nil
	})
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
