package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"interlock/agent"
	"interlock/store"
)

var errClosed = agent.Errorf(agent.CodeUnavailable, "the store is closed")

// lostError is an error after which the connection was no more.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// fail names the operation (a noun phrase) and gives an error its code: by the
// server's SQLSTATE, never by its text. Errors that have a code, or are the
// journal's refusals, pass as they are.
func fail(operation string, err error) error {
	if err == nil {
		return nil
	}
	var coded *agent.Error
	var refusal *store.Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.As(err, &coded) {
		return agent.Errorf(coded.Code, "%s: %w", operation, err)
	}
	advice := ""
	var connecting *pgconn.ConnectError
	connected := !errors.As(err, &connecting)
	if !connected {
		// It holds the whole configuration, with the password: only its cause goes on.
		advice, err = "the database server cannot be reached: ", connecting.Unwrap()
	}
	var failed *pgconn.PgError
	if errors.As(err, &failed) {
		code, meant := meaning(failed.Code)
		if meant != "" {
			advice = meant
		}
		return agent.Errorf(code, "%s: %s%w", operation, advice, described(err, failed))
	}
	var lost *lostError
	var network net.Error
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return agent.Errorf(agent.CodeUnavailable, "%s: %s%w", operation, advice, err)
	}
	if connected && (errors.As(err, &lost) || pgconn.SafeToRetry(err)) {
		advice = "the connection to the database server was lost: "
	}
	if advice != "" || errors.As(err, &network) {
		return agent.Errorf(agent.CodeUnavailable, "%s: %s%w", operation, advice, err)
	}
	return agent.Errorf(agent.CodeInternal, "%s: %w", operation, err)
}

// described is the server's error with its detail, which says which row or limit
// it was.
func described(err error, failed *pgconn.PgError) error {
	if failed.Detail == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, failed.Detail)
}

// sqlState is the server's code for an error, "" where it is not the server's.
func sqlState(err error) string {
	var failed *pgconn.PgError
	if errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}

const (
	readOnly         = "25006" // read_only_sql_transaction
	tooManyConns     = "53300" // too_many_connections
	diskFull         = "53100" // disk_full
	uniqueViolation  = "23505" // unique_violation
	refusedByTrigger = "23001" // restrict_violation
)

// states are single SQLSTATEs; their classes follow below.
var states = map[string]struct {
	code   agent.Code
	advice string
}{
	readOnly:         {agent.CodeUnavailable, "the database server takes no writes (a standby, or default_transaction_read_only); the DSN must name the primary: "},
	tooManyConns:     {agent.CodeUnavailable, "the database server has no connection left; lower the number of connections of each process, or raise the server's limit: "},
	diskFull:         {agent.CodeUnavailable, "the disk of the database server is full; nothing was written, free some space: "},
	uniqueViolation:  {agent.CodeConflict, "a row stands that may not change: "},
	refusedByTrigger: {agent.CodeConflict, "a row stands that may not change: "},
	"57014":          {agent.CodeUnavailable, "the statement was cancelled; nothing was written: "},                              // query_canceled
	"55P03":          {agent.CodeUnavailable, "another transaction holds a lock; nothing was written, try again: "},              // lock_not_available
	"25P03":          {agent.CodeUnavailable, "the transaction took too long; nothing was written: "},                            // idle_in_transaction_session_timeout
	"25P04":          {agent.CodeUnavailable, "the transaction took too long; nothing was written: "},                            // transaction_timeout
	"42501":          {agent.CodeUnavailable, "the database user lacks a right; grant it: "},                                     // insufficient_privilege
	"3D000":          {agent.CodeUnavailable, "there is no such database; create it: "},                                          // invalid_catalog_name
	"3F000":          {agent.CodeUnavailable, "the schema interlock is missing; run interlock migrate: "},                        // invalid_schema_name
	"42P01":          {agent.CodeUnavailable, "a table is missing; run interlock migrate: "},                                     // undefined_table
	"0A000":          {agent.CodeUnavailable, "the schema has changed under the connection, or the server is too old: "},         // feature_not_supported
	"22021":          {agent.CodeInvalid, "a text holds a character that the database does not: "},                               // character_not_in_repertoire
	"22P05":          {agent.CodeInvalid, "a text holds a character that the database does not: "},                               // untranslatable_character
	"54000":          {agent.CodeInvalid, "a value is larger than PostgreSQL holds: "},                                           // program_limit_exceeded
	"XX001":          {agent.CodeUnavailable, "the database is damaged; stop all processes, keep a copy and restore a backup: "}, // data_corrupted
	"XX002":          {agent.CodeUnavailable, "the database is damaged; stop all processes, keep a copy and restore a backup: "}, // index_corrupted
}

// meaning translates an SQLSTATE; its first two characters are the class.
func meaning(state string) (code agent.Code, advice string) {
	if known, ok := states[state]; ok {
		return known.code, known.advice
	}
	class := ""
	if len(state) == 5 {
		class = state[:2]
	}
	switch class {
	case "08": // connection exception
		return agent.CodeUnavailable, "the connection to the database server was lost: "
	case "28": // invalid authorization
		return agent.CodeUnavailable, "the database server refuses the user or its password: "
	case "40": // transaction rollback: serialization, deadlock
		return agent.CodeUnavailable, "another transaction was in the way; nothing was written, try again: "
	case "53": // insufficient resources
		return agent.CodeUnavailable, "the database server is out of a resource; nothing was written: "
	case "57": // operator intervention: shutdown, crash, starting up
		return agent.CodeUnavailable, "the database server is going down or coming up: "
	case "58": // system error
		return agent.CodeUnavailable, "the database server's system failed: "
	}
	return agent.CodeInternal, ""
}
