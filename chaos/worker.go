package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"

	"interlock/config"
	"interlock/worker"
)

// The program runs itself again, as a worker or as what holds a database's lock;
// what for stands in a variable.
const (
	workerVariable = "CHAOS_WORKER"
	holderVariable = "CHAOS_HOLDER"
)

// shutdown is how long a worker may take to end after SIGTERM.
const shutdown = 3 * time.Second

// workerConfig is what a worker process is told.
type workerConfig struct {
	Name     string
	Harness  string // URL
	Temporal string
	Database databaseConfig
	Break    breakage
}

// settings are a worker's, and the harness's.
func (c workerConfig) settings() config.Config {
	s := config.Default()
	s.TaskQueue, s.ShutdownTimeout = agentName, shutdown
	s.Store.Path, s.Store.DSN = c.Database.Store, config.Secret(c.Database.StoreDSN)
	return s
}

// serve is the main function of a worker process. It ends by a signal, and when
// the harness is gone.
func serve(text string) error {
	var c workerConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	h := &harness{url: c.Harness, worker: c.Name, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	db, err := c.Database.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	t, err := dial(ctx, c.Temporal, log, &observer{harness: h})
	if err != nil {
		return err
	}
	defer t.Close()
	return worker.Serve(ctx, worker.Config{Settings: c.settings(), Client: t, Model: provided{script(), h}, Log: log}, definition(c.Harness, db, c.Break))
}

func dial(ctx context.Context, address string, log *slog.Logger, more ...interceptor.ClientInterceptor) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return client.DialContext(ctx, client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(log), Interceptors: more})
}

// databaseConfig says where a world keeps its store, and the product's database
// of the Transactional tool.
type databaseConfig struct {
	Store    string // SQLite's file, or
	StoreDSN string // PostgreSQL's URL
	Product  string // the same kind
}

// open opens the product's database.
func (c databaseConfig) open() (*sql.DB, error) {
	if c.StoreDSN != "" {
		return sql.Open("pgx", c.Product)
	}
	return sql.Open("sqlite", "file:"+c.Product+"?_pragma=busy_timeout(1500)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
}

// hold takes the write locks of SQLite files, and holds them in the middle of a
// transaction until it is killed.
func hold(text string) error {
	var files []string
	if err := json.Unmarshal([]byte(text), &files); err != nil {
		return err
	}
	for _, f := range files {
		db, err := sql.Open("sqlite", "file:"+f+"?_pragma=busy_timeout(10000)&_txlock=immediate")
		if err != nil {
			return err
		}
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`CREATE TABLE never_committed (n INT)`); err != nil {
			return err
		}
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}
