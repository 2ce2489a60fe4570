package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"interlock/agent"
	"interlock/store"
)

const insertBlob = `INSERT INTO blobs (tenant, ref, data, stored_at) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, ref) DO NOTHING`

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
	err := s.write(ctx, "storing of blob "+b.Ref, func(t transaction) error {
		_, err := t.exec(ctx, insertBlob, tenant, b.Ref, data, micros(s.now()))
		return err
	})
	if err != nil {
		return agent.Blob{}, err
	}
	return b, nil
}

// GetBlob implements [store.Blobs].
func (s *Store) GetBlob(ctx context.Context, tenant, ref string, offset, n int) (data []byte, err error) {
	operation := "reading of blob " + ref
	if err := store.CheckNamed("tenant", tenant); err != nil {
		return nil, fail(operation, err)
	}
	if offset < 0 {
		return nil, fail(operation, agent.Errorf(agent.CodeInvalid, "the offset %d is negative", offset))
	}
	query, args := `SELECT substr(data, ? + 1) FROM blobs WHERE tenant = ? AND ref = ?`, []any{offset, tenant, ref}
	if n >= 0 {
		query, args = `SELECT substr(data, ? + 1, ?) FROM blobs WHERE tenant = ? AND ref = ?`, []any{offset, n, tenant, ref}
	}
	found := false
	err = s.read(ctx, operation, query, args, func(r row) error {
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
