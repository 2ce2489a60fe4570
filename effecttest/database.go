package effecttest

import (
	"context"
	"database/sql/driver"
)

// Connector makes the connections of a Transactional tool's database go through
// the network: open the tool's database by [sql.OpenDB] with it. A connection is
// lost, or its worker crashes, at each statement, before the commit, and between
// the commit and its answer. Attempts of a Transactional tool do not overlap here,
// since a pool may have a single connection.
func (n *Network) Connector(base driver.Connector) driver.Connector { return connector{base, n} }

type connector struct {
	driver.Connector
	network *Network
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{base, c.network}, nil
}

// cut draws whether an attempt loses its connection, or its worker, here.
func (n *Network) cut(where string) error {
	h, a := n.running()
	if a == nil {
		return nil
	}
	if h.crash(a, where); a.dead || h.may("its connection is lost "+where) {
		return errNoAnswer
	}
	return nil
}

// conn hands everything on, as far as the driver has it.
type conn struct {
	driver.Conn
	network *Network
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.network.cut("before the transaction"); err != nil {
		return nil, err
	}
	var tx driver.Tx
	var err error
	if b, ok := c.Conn.(driver.ConnBeginTx); ok {
		tx, err = b.BeginTx(ctx, opts)
	} else {
		tx, err = c.Begin()
	}
	if err != nil {
		return nil, err
	}
	return transaction{tx, c.network}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.network.cut("before a statement"); err != nil {
		return nil, err
	}
	return e.ExecContext(ctx, query, args)
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.network.cut("before a query"); err != nil {
		return nil, err
	}
	return q.QueryContext(ctx, query, args)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.network.cut("before a statement"); err != nil {
		return nil, err
	}
	if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, query)
	}
	return c.Prepare(query)
}

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type transaction struct {
	driver.Tx
	network *Network
}

// Commit: a connection that is lost before it takes the transaction with it.
func (t transaction) Commit() error {
	if err := t.network.cut("before the commit"); err != nil {
		_ = t.Rollback()
		return err
	}
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.network.cut("after the commit")
}
