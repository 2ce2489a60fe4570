package api_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/api"
)

// The document that is checked in is the one that is served: a change of it is
// seen in review, and a breaking one needs a reason (make openapi).
func TestDocument(t *testing.T) {
	want, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	got, err := api.Document()
	require.NoError(t, err)
	if string(want) != string(got) {
		t.Fatalf("api/openapi.json is not what the routes say: run make openapi")
	}
	l := newLab(t)
	require.Equal(t, string(got), l.get("", "/openapi.json").ok(200).body)
	// Every answer in these tests is compared with the document (lab.ask).
	require.NotEmpty(t, l.server.Conforms("GET", "/v1/runs", 200, []byte(`{"runs":null}`)))
	require.NotEmpty(t, l.server.Conforms("GET", "/v1/runs", 200, []byte(`{"runs":[],"other":1}`)))
	require.Empty(t, l.server.Conforms("GET", "/v1/runs", 200, []byte(`{"runs":[]}`)))
}
