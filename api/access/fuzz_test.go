package access

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a file of access tokens holds, it is refused, or each of its entries is one.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"tokens: []\n", "tokens:\n  - id: ann\n    sha256: " + "00000000000000000000000000000000000000000000000000000000000000ff\n    tenant: acme\n    subject: ann\n    may: [reviewer]\n",
		"tokens:\n- &a {id: x}\n- *a\n", "{}", "tokens: {a: b}", "---\n---\n", "tokens: [[[[[[[[[[[[]]]]]]]]]]]]", "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parse("access.yaml", data)
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, e := range entries {
			require.NoError(t, e.Check())
			require.False(t, ids[e.ID])
			ids[e.ID] = true
		}
	})
}
