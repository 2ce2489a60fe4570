package signals_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
)

// What a decoder takes encodes to what it takes again, with the same meaning; what
// it does not take has a code.
func FuzzPayloads(f *testing.F) {
	for _, seed := range []string{`{"id":"m","principal":{"subject":"ann"},"text":"hi"}`, `{"id":"v","gate":"1.1","digest":"d","verdict":"approve","principal":{"subject":"ann"}}`,
		`{"id":"v","gate":"1.1","digest":"d","verdict":"edit","args":{"n":9007199254740993},"principal":{"subject":"ann"}}`,
		`{"agent":"a","tenant":"t","key":"k","principal":{"subject":"s"},"body":{"x":[1e9,null]}}`, `{"ID":"a","id":"b"}`, `[]`, `{"answer":{"confirm":false,"fields":{"a":0}}}`, "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		again(t, signals.Messages, data)
		again(t, signals.Verdicts, data)
		again(t, signals.Starts, data)
		again(t, signals.Cancels, data)
		again(t, signals.Amends, data)
		again(t, signals.Undos, data)
	})
}

func again[T any](t *testing.T, d agent.Decoder[T], data []byte) {
	v, err := d.Decode(data)
	if err != nil {
		require.NotEmpty(t, agent.ErrorCode(err))
		return
	}
	encoded, err := json.Marshal(v)
	require.NoError(t, err)
	same, err := d.Decode(encoded)
	require.NoError(t, err, "%s", encoded)
	twice, err := json.Marshal(same)
	require.NoError(t, err)
	require.Equal(t, string(encoded), string(twice))
}
