package config

import (
	"errors"
	"os"
	"strings"
)

// fromFile reads a secret from the file that another key names. Two sources of
// one secret are a mistake, whichever layer each of them is in: which one was
// meant cannot be known. The path is not told: it may be a secret that was
// written in the wrong place.
func (l *loader) fromFile(key string, secret *Secret, fileKey string, named *string) {
	path := *named
	switch {
	case path == "" || l.reported(fileKey):
	case *secret != "":
		l.report(Problem{Key: fileKey, Origin: l.from(fileKey),
			Want: key + " or " + fileKey + ", not both; " + key + " is set too, by " + l.from(key)})
	default:
		line, err := readLine(path)
		if err != nil {
			k, _ := keyNamed(fileKey)
			l.report(Problem{Key: fileKey, Origin: l.from(fileKey) + "; " + err.Error(), Want: k.Want})
			*named = ""
			return
		}
		*secret, l.origin[key] = Secret(line), "file "+path
	}
}

// readLine is the one line of a file. Its errors never hold a part of it.
func readLine(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Unwrap(err) // without the path
	}
	line := strings.TrimSpace(string(data))
	switch {
	case line == "":
		return "", errors.New("it is empty")
	case strings.ContainsAny(line, "\r\n"):
		return "", errors.New("it holds more than one line")
	}
	return line, nil
}

// oneStore drops the default of store.path where a DSN is given; one that
// somebody has written is a mistake then.
func (l *loader) oneStore(cfg *Config) {
	if cfg.Store.DSN == "" {
		return
	}
	if l.origin["store.path"] == "" {
		cfg.Store.Path, l.origin["store.path"] = "", "not used"
		return
	}
	if cfg.Store.Path != "" {
		p := problemWith("store.dsn", *cfg)
		p.Origin, p.Want = l.from("store.dsn"), "one database: store.path or store.dsn, not both; store.path is set too, by "+l.from("store.path")
		l.report(p)
	}
}
