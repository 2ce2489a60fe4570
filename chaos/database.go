package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"interlock/store/pgtest"
)

// database is the database of a world, which can be killed.
type database interface {
	config() databaseConfig
	// down kills it; while it is down no write succeeds. False: it could not.
	down() bool
	up() error
	close()
}

// outages are how long a database may be down: shorter and longer than a caller
// waits for it.
var outages = []time.Duration{500 * time.Millisecond, 3 * time.Second, 7 * time.Second, 12 * time.Second}

// openDatabase makes a new one of a kind, with the table of the product.
func openDatabase(kind, dir string) (d database, err error) {
	switch kind {
	case sqliteKind:
		d = &sqliteDatabase{dir: dir}
	case postgresKind:
		d, err = launchPostgres()
	}
	if err != nil {
		return nil, err
	}
	db, err := d.config().open()
	if err == nil {
		_, err = db.Exec(`CREATE TABLE payments (id TEXT NOT NULL, ref TEXT NOT NULL, step TEXT NOT NULL, undoes TEXT NOT NULL)`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		d.close()
		return nil, fmt.Errorf("the product's database: %w", err)
	}
	return d, nil
}

const (
	sqliteKind   = "sqlite"
	postgresKind = "postgres"
)

type postgresDatabase struct {
	server         *pgtest.Process
	store, product string
}

func launchPostgres() (database, error) {
	p, err := pgtest.Launch()
	if err != nil {
		return nil, err
	}
	d := &postgresDatabase{server: p}
	if d.store, err = p.Database("store"); err == nil {
		d.product, err = p.Database("product")
	}
	if err != nil {
		p.Remove()
		return nil, err
	}
	return d, nil
}

func (d *postgresDatabase) config() databaseConfig {
	return databaseConfig{StoreDSN: d.store, Product: d.product}
}
func (d *postgresDatabase) down() bool { return d.server.Kill() == nil }
func (d *postgresDatabase) up() error  { return d.server.Start() }
func (d *postgresDatabase) close()     { d.server.Remove() }

// sqliteDatabase has no server. What takes its place is another process that
// holds the write locks in a transaction of its own, and is killed with it.
type sqliteDatabase struct {
	dir    string
	holder *exec.Cmd
}

func (d *sqliteDatabase) config() databaseConfig {
	return databaseConfig{Store: filepath.Join(d.dir, "interlock.db"), Product: filepath.Join(d.dir, "product.db")}
}

func (d *sqliteDatabase) down() bool {
	c := d.config()
	files, err := json.Marshal([]string{c.Store, c.Product})
	if err != nil {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), holderVariable+"="+string(files))
	if _, err := cmd.StdinPipe(); err != nil { // closed when we die
		return false
	}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" { // a stopped worker holds a lock
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return false
	}
	d.holder = cmd
	return true
}

func (d *sqliteDatabase) up() error {
	if d.holder != nil {
		_ = d.holder.Process.Kill()
		_ = d.holder.Wait()
		d.holder = nil
	}
	return nil
}

func (d *sqliteDatabase) close() { _ = d.up() }

// payments are what pay and its undo have done for a run.
func payments(ctx context.Context, db *sql.DB, id string) (out []happening, err error) {
	rows, err := db.QueryContext(ctx, `SELECT ref, step, undoes FROM payments WHERE id = $1`, id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		h := happening{tool: pay, id: id}
		if err := rows.Scan(&h.ref, &h.step, &h.undoes); err != nil {
			return nil, err
		}
		if h.undoes != "" {
			h.tool = unpay
		}
		out = append(out, h)
	}
	return out, rows.Err()
}
