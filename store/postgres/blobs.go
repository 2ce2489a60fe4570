package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"

	"interlock/agent"
	"interlock/store"
)

const insertBlob = `INSERT INTO interlock.blobs (tenant, ref, data, stored_at)
VALUES ($1, $2, $3, coalesce($4::timestamptz, clock_timestamp())) ON CONFLICT (tenant, ref) DO NOTHING`

// PutBlob implements [store.Blobs].
func (s *Store) PutBlob(ctx context.Context, tenant string, data []byte) (agent.Blob, error) {
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return agent.Blob{}, fail("storing of a blob", err)
	}
	sum := sha256.Sum256(data)
	b := agent.Blob{Ref: hex.EncodeToString(sum[:]), Bytes: len(data)}
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	err := s.write(ctx, "storing of blob "+b.Ref, func(t *transaction) error {
		t.exec(insertBlob, tenant, b.Ref, data, s.clock())
		return nil
	})
	if err != nil {
		return agent.Blob{}, err
	}
	return b, nil
}

// GetBlob implements [store.Blobs].
func (s *Store) GetBlob(ctx context.Context, tenant, ref string, offset, n int) (data []byte, err error) {
	operation := "reading of blob " + ref
	if err := errors.Join(store.CheckNamed("tenant", tenant), store.CheckText("blob", ref)); err != nil {
		return nil, fail(operation, err)
	}
	if offset < 0 {
		return nil, fail(operation, agent.Errorf(agent.CodeInvalid, "the offset %d is negative", offset))
	}
	// No value of PostgreSQL's is larger than its integer counts.
	const most = math.MaxInt32 - 1
	from, length := min(offset, most)+1, most
	if n >= 0 {
		length = min(n, most)
	}
	length = min(length, math.MaxInt32-from)
	found := false
	err = s.read(ctx, operation, `SELECT substring(data FROM $3::int FOR $4::int) FROM interlock.blobs WHERE tenant = $1 AND ref = $2`,
		[]any{tenant, ref, from, length}, func(r row) error {
			found = true
			return r.Scan(&data)
		})
	if err == nil && !found {
		err = fail(operation, agent.Errorf(agent.CodeNotFound, "there is no such blob"))
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}
