package worker

import (
	"context"
	"log/slog"

	"interlock/config"
	"interlock/token"
)

// trusted opens what the configuration says that tokens are checked by. close ends
// what keeps it up to date.
func trusted(c config.Tokens, log *slog.Logger) (t token.Trust, close func(), err error) {
	t, close = token.Trust{Issuer: c.Issuer, Audience: c.Audience}, func() {}
	switch {
	case c.JWKS != "":
		set, err := token.OpenJWKS(context.Background(), c.JWKS, &token.JWKSOptions{Log: log})
		if err != nil {
			return token.Trust{}, nil, err
		}
		t.Keys, close = set, func() { _ = set.Close() }
	case c.Keys != "":
		files, err := token.OpenFiles(c.Keys)
		if err != nil {
			return token.Trust{}, nil, err
		}
		t.Keys = files
	}
	if c.Revoked == "" {
		return t, close, nil
	}
	revoked, err := token.OpenRevocations(c.Revoked)
	if err != nil {
		close()
		return token.Trust{}, nil, err
	}
	t.Directory = revoked
	return t, close, nil
}
