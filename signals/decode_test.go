package signals_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/signals"
)

func TestDecodersRefuse(t *testing.T) {
	start := func(data string) error { _, err := signals.Starts.Decode([]byte(data)); return err }
	message := func(data string) error { _, err := signals.Messages.Decode([]byte(data)); return err }
	cancel := func(data string) error { _, err := signals.Cancels.Decode([]byte(data)); return err }
	verdict := func(data string) error { _, err := signals.Verdicts.Decode([]byte(data)); return err }
	const who = `"principal":{"subject":"ann"}`
	for _, c := range []struct {
		decode func(string) error
		data   string
		say    string
	}{
		{message, `{"id":"1","text":"a",` + who + `,"body":"b"}`, "/body does not exist; allowed: id, policy, principal, text, token, trace_id"},
		{message, `{"id":"1","text":"a","principal":{"subject":"ann","admin":true}}`, "/principal/admin does not exist"},
		{message, `{"id":1,"text":"a",` + who + `}`, "/id must be string, not integer"},
		{message, `{"id":"1","text":null,` + who + `}`, "/text must be string, not null"},
		{message, `{"id":"1","text":"a","principal":"ann"}`, "/principal must be object, not string"},
		{message, `{"id":"1","text":"a","principal":{"subject":"ann","roles":["a",2]}}`, "/principal/roles/1 must be string, not integer"},
		{message, `{"id":"1","text":"a"}`, "/principal is missing"},
		{message, `{"id":"1","id":"2","text":"a",` + who + `}`, `duplicate key "id" at /`},
		{message, `{"id":"1","ID":"2","text":"a",` + who + `}`, `keys "id" and "ID" differ only in case at /`},
		{message, `{"id":"1","text":"a","principal":{"subject":"ann","subject":"bob"}}`, `duplicate key "subject" at /principal`},
		{message, `{"id":"1","text":"a\u0000",` + who + `}`, "U+0000 is not allowed at /text"},
		{message, `[]`, "the value must be object, not array"},
		{message, `{"id":"1","text":"a",` + who + `} {}`, "text after the value"},
		{message, ``, "/id is missing"},
		{start, `{"agent":"refund","tenant":"acme","key":"k",` + who + `,"versions":1}`, "/versions does not exist"},
		{start, `{"agent":"refund","tenant":"acme","key":"k",` + who + `,"version":"1"}`, "/version must be integer, not string"},
		{start, `{"agent":"refund","tenant":"acme","key":"k",` + who + `,"version":1.5}`, "/version must be integer, not number"},
		{start, `{"agent":"refund","tenant":"acme","key":"k",` + who + `,"message":{"id":"1","text":"a",` + who + `,"x":1}}`, "/message/x does not exist"},
		{start, `{"agent":"refund","tenant":"acme","key":"k",` + who + `,"body":{"a":1,"a":2}}`, `duplicate key "a" at /body`},
		{cancel, `{"id":"1",` + who + `,"undone":"run"}`, "/undone does not exist"},
		{verdict, `{"id":"1","gate":"3.1","digest":"d","verdict":true,` + who + `}`, "/verdict must be string, not boolean"},
		{verdict, `{"id":"1","gate":"3.1","verdict":"approve",` + who + `}`, "/digest is missing"},
	} {
		err := c.decode(c.data)
		require.Error(t, err, c.data)
		require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%s: %v", c.data, err)
		require.Contains(t, err.Error(), c.say, c.data)
	}
}
