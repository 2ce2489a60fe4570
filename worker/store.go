package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"interlock/config"
	"interlock/store"
	"interlock/store/sqlite"
)

// OpenStore opens the store that the configuration names, and makes its folder
// where it is missing.
func OpenStore(ctx context.Context, c config.Config) (store.Store, error) {
	if err := os.MkdirAll(filepath.Dir(c.Store.Path), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return sqlite.Open(ctx, c.Store.Path, nil)
}
