package api_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/agent"
	"interlock/api"
	"interlock/api/client"
)

// What streams send is not in the document: the Go client's own types for it have
// every member.
func TestClientKnowsStreams(t *testing.T) {
	for _, c := range []struct{ sent, into any }{
		{api.LiveDelta{Turn: 1, Attempt: 2, N: 3, Text: "x"}, &client.Delta{}},
		{api.GateChange{Type: agent.EventGateOpened, Address: "a", Agent: "b", Key: "c", Gate: "d", Status: agent.GateOpen, Roles: []string{"r"}, Seq: 9}, &client.GateChange{}},
	} {
		data, err := json.Marshal(c.sent)
		require.NoError(t, err)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(c.into))
		again, err := json.Marshal(c.into)
		require.NoError(t, err)
		require.JSONEq(t, string(data), string(again))
	}
}
