package sqlite

import (
	"context"
	"fmt"

	"interlock/store"
)

const upsertDeployment = `INSERT INTO deployments (agent, version, fingerprint, at) VALUES (?, ?, ?, ?)
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
	if d.At.IsZero() {
		d.At = s.now()
	}
	return s.write(ctx, operation, func(t transaction) error {
		_, err := t.exec(ctx, upsertDeployment, d.Agent, d.Version, d.Fingerprint, micros(d.At))
		return err
	})
}

// AllDeployed implements [store.Deployments].
func (s *Store) AllDeployed(ctx context.Context) (all []store.Deployment, err error) {
	err = s.read(ctx, "list of deployments", `SELECT agent, version, fingerprint, at FROM deployments ORDER BY agent, version`, nil,
		func(r row) error {
			var d store.Deployment
			var at int64
			err := r.Scan(&d.Agent, &d.Version, &d.Fingerprint, &at)
			d.At = fromMicros(at)
			all = append(all, d)
			return err
		})
	return all, err
}
