package effecttest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"interlock/agent"
	"interlock/effecttest"
	"interlock/examples/refund"
	"interlock/examples/refund/mail"
	"interlock/examples/refund/shop"
	"interlock/store"
	"interlock/store/pgtest"
	"interlock/store/postgres"
	storesqlite "interlock/store/sqlite"
	"interlock/tool"
)

// passes are the correct sample tools, one of each effect.
var passes = map[string]func(*bank) effecttest.Subject{
	"keyed":        func(b *bank) effecttest.Subject { return effecttest.Tool(b.keyed()) },
	"reconcilable": func(b *bank) effecttest.Subject { b.ignoresKey = true; return effecttest.Tool(b.reconcilable()) },
	"once":         func(b *bank) effecttest.Subject { return effecttest.Tool(b.once()) },
	"repeatable":   func(b *bank) effecttest.Subject { return effecttest.Tool(b.keyed().Repeatable()) },
}

func TestCorrectToolsPass(t *testing.T) {
	for name, subject := range passes {
		t.Run(name, func(t *testing.T) {
			b := newBank()
			effecttest.Run(t, b.target(subject(b)), effecttest.Options{Rounds: 1500})
		})
	}
}

// Without a network only what is around the tool goes wrong.
func TestCorrectToolsPass_WithoutNetwork(t *testing.T) {
	for name, subject := range passes {
		t.Run(name, func(t *testing.T) {
			b := newBank()
			target := b.target(subject(b))
			target.Network = nil
			effecttest.Run(t, target, effecttest.Options{Rounds: 1000})
		})
	}
}

// What a side refuses for good is not charged, and is asked for as another effect.
func TestRefusals(t *testing.T) {
	b := newBank()
	b.refuses = func(c charge) bool { return c.Order%2 == 0 }
	for _, s := range []effecttest.Subject{effecttest.Tool(b.keyed()), effecttest.Tool(b.reconcilable())} {
		effecttest.Run(t, b.target(s), effecttest.Options{Rounds: 500})
	}
}

func TestStores(t *testing.T) {
	open := map[string]func(t *testing.T, now func() time.Time) store.Ledger{
		"sqlite": func(t *testing.T, now func() time.Time) store.Ledger {
			s, err := storesqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), &storesqlite.Options{Now: now})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"postgres": func(t *testing.T, now func() time.Time) store.Ledger {
			s, err := postgres.Open(t.Context(), pgtest.New(t), &postgres.Options{Now: now})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
	for driver, open := range open {
		for name, subject := range passes {
			t.Run(driver+"/"+name, func(t *testing.T) {
				b := newBank()
				effecttest.Run(t, b.target(subject(b)), effecttest.Options{Rounds: 40,
					Ledger: func(now func() time.Time) tool.Ledger { return effecttest.StoreLedger(open(t, now)) }})
			})
		}
	}
}

// A tool of an HTTP service, with the faults before the service.
func TestHTTP(t *testing.T) {
	b := newBank()
	server := httptest.NewServer(b.net.Handler(b.service()))
	t.Cleanup(server.Close)
	h := tool.HTTP{URL: server.URL + "/charges", AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	ask := h
	ask.URL += "/{$key}"
	commit := func(*state, charge, charged) error { return nil }
	for name, s := range map[string]effecttest.Subject{
		"keyed":        effecttest.Tool(tool.Keyed("charge", tool.Send[charge, charged](h), commit)),
		"reconcilable": effecttest.Tool(tool.Reconcilable("charge", tool.Send[charge, charged](h), tool.LookUp[charge, charged](ask), commit)),
	} {
		t.Run(name, func(t *testing.T) { effecttest.Run(t, b.target(s), effecttest.Options{Rounds: 100}) })
	}
	t.Run("the service ignores the key", func(t *testing.T) {
		b.ignoresKey = true
		fails(t, effecttest.Repeated, b.target(effecttest.Tool(tool.Keyed("charge", tool.Send[charge, charged](h), commit))), effecttest.Options{Seed: 1})
	})
	t.Run("and so with the faults in the client", func(t *testing.T) {
		plain := httptest.NewServer(b.service())
		t.Cleanup(plain.Close)
		client := &http.Client{Transport: b.net.RoundTripper(nil)}
		fails(t, effecttest.Repeated, b.target(effecttest.Tool(tool.Keyed("charge", posted(client, plain.URL), commit))), effecttest.Options{Seed: 1})
		b.ignoresKey = false
		effecttest.Run(t, b.target(effecttest.Tool(tool.Keyed("charge", posted(client, plain.URL), commit))), effecttest.Options{Rounds: 100})
	})
}

// posted is a tool's function with a client of its own.
func posted(client *http.Client, url string) func(context.Context, tool.Key, charge) (charged, error) {
	return func(ctx context.Context, k tool.Key, c charge) (r charged, err error) {
		body, _ := agent.Encode(c)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charges", strings.NewReader(body.String()))
		if err != nil {
			return r, err
		}
		req.Header.Set("Idempotency-Key", string(k))
		resp, err := client.Do(req)
		if err != nil {
			return r, err
		}
		defer func() { _ = resp.Body.Close() }()
		return r, json.NewDecoder(resp.Body).Decode(&r)
	}
}

// The refund example's mail, as its agent has it.
func TestRefundMail(t *testing.T) {
	s, err := mail.Serve(t.Context(), ":0", filepath.Join(t.TempDir(), "mail.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var net effecttest.Network
	client := mail.Client{BaseURL: s.URL(), HTTP: &http.Client{Transport: net.RoundTripper(nil)}}
	effecttest.Run(t, effecttest.Target{
		Tool: effecttest.ToolOf(refund.Agent(&shop.Shop{}, client), "send_receipt"),
		Args: func(n int) any {
			return mail.Receipt{RefundID: "r", OrderID: "o", CustomerID: "c", Amount: agent.Money{Minor: int64(n), Currency: "EUR"}}
		},
		Happened: func(ctx context.Context, c effecttest.Call) (n int, err error) {
			sent, err := s.Messages(ctx)
			for _, m := range sent {
				if m.Key == string(c.Key) {
					n++
				}
			}
			return n, err
		},
		Network: &net,
	}, effecttest.Options{Rounds: 60})
}

// booking is a database with a tool's effects.
type booking struct {
	db  *sql.DB
	net effecttest.Network
}

type file struct {
	dsn string
	d   *sqlite.Driver
}

func (f file) Connect(context.Context) (driver.Conn, error) { return f.d.Open(f.dsn) }
func (f file) Driver() driver.Driver                        { return f.d }

var connectors = map[string]func(t *testing.T) driver.Connector{
	"sqlite": func(t *testing.T) driver.Connector {
		dsn := "file:" + filepath.Join(t.TempDir(), "b.db") + "?_pragma=busy_timeout(1000)&_pragma=synchronous(off)&_pragma=journal_mode(wal)"
		return file{dsn, &sqlite.Driver{}}
	},
	"postgres": func(t *testing.T) driver.Connector {
		config, err := pgx.ParseConfig(pgtest.New(t))
		require.NoError(t, err)
		return stdlib.GetConnector(*config)
	},
}

func newBooking(t *testing.T, base driver.Connector) *booking {
	b := &booking{}
	b.db = sql.OpenDB(b.net.Connector(base))
	t.Cleanup(func() { _ = b.db.Close() })
	_, err := b.db.ExecContext(t.Context(), `CREATE TABLE bookings (n INTEGER)`)
	require.NoError(t, err)
	return b
}

const insert = `INSERT INTO bookings (n) VALUES ($1)`

func (b *booking) target(run func(context.Context, *sql.Tx, charge) (charged, error)) effecttest.Target {
	book := tool.Transactional("book", b.db, run, func(*state, charge, charged) error { return nil })
	return effecttest.Target{Tool: effecttest.Tool(book), Args: func(n int) any { return charge{n} }, Network: &b.net,
		Happened: func(ctx context.Context, c effecttest.Call) (n int, err error) {
			err = b.db.QueryRowContext(ctx, `SELECT count(*) FROM bookings WHERE n = $1`, c.N).Scan(&n)
			return n, err
		}}
}

func TestTransactional(t *testing.T) {
	for engine, connector := range connectors {
		t.Run(engine+"/in its transaction", func(t *testing.T) {
			b := newBooking(t, connector(t))
			effecttest.Run(t, b.target(func(ctx context.Context, tx *sql.Tx, a charge) (charged, error) {
				_, err := tx.ExecContext(ctx, insert, a.Order)
				return charged{"b"}, err
			}), effecttest.Options{Rounds: 200})
		})
		t.Run(engine+"/refusals", func(t *testing.T) {
			b := newBooking(t, connector(t))
			target := b.target(func(ctx context.Context, tx *sql.Tx, a charge) (charged, error) {
				if _, err := tx.ExecContext(ctx, insert, a.Order); err != nil {
					return charged{}, err
				}
				if a.Order%2 == 0 {
					return charged{}, tool.Refused(errDeclined)
				}
				return charged{"b"}, nil
			})
			effecttest.Run(t, target, effecttest.Options{Rounds: 100})
		})
		t.Run(engine+"/it commits by itself", func(t *testing.T) {
			b := newBooking(t, connector(t))
			effecttest.Run(t, b.target(func(ctx context.Context, tx *sql.Tx, a charge) (charged, error) {
				if _, err := tx.ExecContext(ctx, insert, a.Order); err != nil {
					return charged{}, err
				}
				return charged{"b"}, tx.Commit()
			}), effecttest.Options{Rounds: 100})
		})
		t.Run(engine+"/beside its transaction", func(t *testing.T) {
			b, other := newBooking(t, connector(t)), map[int]int{}
			target := b.target(func(_ context.Context, _ *sql.Tx, a charge) (charged, error) {
				other[a.Order]++
				return charged{"b"}, nil
			})
			target.Happened = func(_ context.Context, c effecttest.Call) (int, error) { return other[c.N], nil }
			fails(t, effecttest.Repeated, target, effecttest.Options{Seed: 1})
		})
	}
}

func TestNothingToProve(t *testing.T) {
	b := newBank()
	read := tool.ReadOnly("look", func(context.Context, charge) (charged, error) { return charged{}, nil }, func(*state, charge, charged) error { return nil })
	none := func(err error, text string) {
		t.Helper()
		require.ErrorContains(t, err, text)
		require.False(t, errors.As(err, new(*effecttest.Violation)))
	}
	check := func(target effecttest.Target) error {
		return effecttest.Check(t.Context(), target, effecttest.Options{Rounds: 20})
	}
	none(check(b.target(effecttest.Tool(read))), "look is ReadOnly: it has no side effect, so there is nothing to prove")
	none(check(b.target(effecttest.ToolOf(refund.Agent(&shop.Shop{}, mail.Client{}), "send_recipe"))), `no tool "send_recipe"`)
	none(check(effecttest.Target{Tool: effecttest.Tool(b.keyed())}), "Args and Happened are needed")
	b.refuses = func(charge) bool { return true }
	none(check(b.target(effecttest.Tool(b.keyed()))), "in 20 rounds the effect of charge never happened: card declined")
}

// Two Runs would disturb each other.
func TestNetworkServesOneRun(t *testing.T) {
	b := newBank()
	target := b.target(effecttest.Tool(b.keyed()))
	inner := target.Happened
	target.Happened = func(ctx context.Context, c effecttest.Call) (int, error) {
		require.ErrorContains(t, effecttest.Check(ctx, target, effecttest.Options{Rounds: 1}), "the network serves another Run")
		return inner(ctx, c)
	}
	effecttest.Run(t, target, effecttest.Options{Rounds: 3})
}
