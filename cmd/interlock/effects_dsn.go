package main

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// productDatabase is a product's own database as a command line names it.
type productDatabase struct {
	postgres *pgx.ConnConfig // nil: SQLite
	file     string          // of SQLite
	params   url.Values
}

const dsnForms = "a DSN is like postgres://user@host:5432/database?sslmode=verify-full, or the path of a SQLite file, or its file: URL"

// dsnOf is the DSN of a command: an argument, or the one line of a file. It may
// hold a password, so no error tells any of it.
func dsnOf(args []string, file string) (string, error) {
	switch {
	case len(args) == 1 && file == "":
		return args[0], nil
	case len(args) == 1 || file == "":
		return "", usagef("name the product's database once, by a DSN or by --dsn-file: %s", dsnForms)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("--dsn-file cannot be read: %v", errors.Unwrap(err))
	}
	dsn := strings.TrimSpace(string(text))
	if dsn == "" || strings.ContainsAny(dsn, "\r\n") {
		return "", usagef("--dsn-file must hold one line, the DSN")
	}
	return dsn, nil
}

// parseDSN reads a DSN; nothing is opened. A file must be there, but where it may
// be made.
func parseDSN(dsn string, make bool) (productDatabase, error) {
	var d productDatabase
	scheme, _, isURL := strings.Cut(dsn, "://")
	switch {
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		c, err := pgx.ParseConfig(dsn)
		if err != nil || strings.Contains(c.Database, "@") || strings.Contains(c.Host, "@") {
			return d, usagef("the DSN cannot be read: %s; characters such as @ : / ? # %% in a password are written as %%40 %%3A %%2F %%3F %%23 %%25", dsnForms)
		}
		if c.ConnectTimeout == 0 {
			c.ConnectTimeout = 10 * time.Second
		}
		d.postgres = c
		return d, nil
	case strings.HasPrefix(dsn, "file:"):
		u, err := url.Parse(dsn)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return d, usagef("the file: URL cannot be read: write file:/path/to/file.db")
		}
		if d.params, err = url.ParseQuery(u.RawQuery); err != nil {
			return d, usagef("the query of the file: URL cannot be read")
		}
		if d.file = u.Path; d.file == "" {
			d.file = u.Opaque
		}
	case isURL:
		return d, usagef("Transactional tools work in SQLite and PostgreSQL, and this DSN is of neither: %s", dsnForms)
	default:
		d.file = dsn
	}
	if d.file == "" || strings.Contains(d.file, ":memory:") || strings.ContainsRune(d.file, 0) {
		return d, usagef("the DSN names no file: %s", dsnForms)
	}
	info, err := os.Stat(d.file)
	switch {
	case err == nil && info.IsDir():
		return d, usagef("the DSN names a folder; it must name the database's file")
	case errors.Is(err, os.ErrNotExist) && !make:
		return d, usagef("there is no such file: %s; give the path of the product's database", inline(shortened(d.file)))
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return d, usagef("the file of the database cannot be looked at: %v", errors.Unwrap(err))
	}
	return d, nil
}

// shortened is a path of which no part can be a password: a DSN that is no URL may
// hold one.
func shortened(path string) string {
	if strings.ContainsAny(path, "@=") {
		return "(what stands there is no path, it seems)"
	}
	return path
}

// open opens the database. A file is only made where make says so.
func (d productDatabase) open(make bool) (*sql.DB, error) {
	if d.postgres != nil {
		return stdlib.OpenDB(*d.postgres), nil
	}
	abs, err := filepath.Abs(d.file)
	if err != nil {
		return nil, err
	}
	params := url.Values{}
	for k, v := range d.params {
		params[k] = v
	}
	if params.Get("mode") == "" {
		params.Set("mode", map[bool]string{false: "rw", true: "rwc"}[make])
	}
	params.Add("_pragma", "busy_timeout(5000)")
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: params.Encode()}
	return sql.Open("sqlite", u.String())
}
