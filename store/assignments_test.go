package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/store"
)

func TestCovering(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	away := func(who, cover string, from, until time.Duration) store.Absence {
		return store.Absence{Tenant: "acme", Subject: who, Cover: cover, From: at.Add(from), Until: at.Add(until), By: who}
	}
	all := []store.Absence{away("ann", "bob", 0, time.Hour), away("bob", "cyd", -time.Hour, time.Minute), away("dan", "ann", time.Minute, time.Hour),
		away("eve", "eva", -time.Hour, 0), away("x", "y", 0, time.Hour), away("y", "x", 0, time.Hour)}
	for who, cover := range map[string]string{"ann": "cyd", "bob": "cyd", "cyd": "cyd", "dan": "dan", "eve": "eve", "none": "none"} {
		require.Equal(t, cover, store.Covering(all, who, at), who)
	}
	require.Contains(t, []string{"x", "y"}, store.Covering(all, "x", at), "a circle ends")
	require.Equal(t, "bob", store.Covering(all, "ann", at.Add(2*time.Minute)))
}
