package visible

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]struct{ shown, held string }{
		"Refund 89.90 EUR für Łukasz, 退款": {"Refund 89.90 EUR für Łukasz, 退款", ""},
		"Привет, κόσμος":                  {"Привет, κόσμος", ""},
		"<img src=x onerror=1>":           {"<img src=x onerror=1>", ""},
		"gpj\u202eexe.":                   {`gpj\u202eexe.`, Direction},
		"a\u200bb":                        {`a\u200bb`, Invisible},
		"a\U000e0100b":                    {`a\udb40\udd00b`, Invisible},
		"a\u3164b":                        {`a\u3164b`, Invisible},
		"a\u00a0b":                        {`a\u00a0b`, Space},
		"p\u0430ypal.com":                 {`p\u0430ypal.com`, Mixed},
		"p\u200b\u0430y":                  {`p\u200b\u0430y`, Invisible + "; " + Mixed},
		"\x1b[2Jgone\r\n\x07":             {`\u001b[2Jgone\u000d\u000a\u0007`, Control},
		"\u009b2J":                        {`\u009b2J`, Control},
		"bad \xff utf8":                   {`bad \ufffd utf8`, Control},
		"x" + strings.Repeat(" ", 16):     {"x" + strings.Repeat(" ", 16), Padding},
	} {
		shown, held := Text(text)
		require.Equal(t, want.shown, shown, "%q", text)
		require.Equal(t, want.held, strings.Join(held, "; "), "%q", text)
	}
}

// What is shown of a JSON text is JSON of the same value.
func TestVisibleJSONIsTheSameValue(t *testing.T) {
	value := "a\u202e\u200b\U000e0100\u00a0p\u0430y\u2028" + strings.Repeat("\u00a0", 500)
	raw, err := json.Marshal(map[string]string{value: value})
	require.NoError(t, err)
	shown, _ := Text(string(raw))
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(shown), &back))
	require.Equal(t, map[string]string{value: value}, back)
}
