package api

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequireDecodes: whatever comes, it is refused as a problem of the client's, or
// has one form that decodes to itself.
func RequireDecodes(t *testing.T, data []byte) {
	out, err := decodeBody(data, "application/json", 1<<10)
	if err != nil {
		p, ok := err.(*Problem)
		require.True(t, ok)
		require.Less(t, p.Status, 500)
		require.True(t, json.Valid([]byte(mustJSON(t, p))))
		return
	}
	if out == nil {
		return
	}
	require.True(t, json.Valid(out))
	again, err := decodeBody(out, "", 1<<20)
	require.NoError(t, err)
	require.Equal(t, string(out), string(again))
	var v any
	_ = jsonFormat.Unmarshal(out, &v) // it must not panic
	var b VerdictBody
	_ = jsonFormat.Unmarshal(out, &b)
}

func mustJSON(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
