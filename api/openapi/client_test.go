package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The client that is checked in is the one of the document that is checked in.
func TestClientIsOfTheDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.gen.go")
	require.NoError(t, writeClient("../..", "../openapi.json", path))
	_, err := os.ReadFile("../../tools/go.mod") // so that the go command sees that a result depends on it
	require.NoError(t, err)
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	have, err := os.ReadFile("../client/client.gen.go")
	require.NoError(t, err)
	if string(want) != string(have) {
		t.Fatal("api/client/client.gen.go is not what api/openapi.json says: run make openapi")
	}
}

func TestForGenerator(t *testing.T) {
	const parts = `{"paths":{
		"/v1/live":{"get":{"responses":{"200":{"content":{"text/event-stream":{}}}}}},
		"/v1/a":{"post":{"parameters":[{"name":"Idempotency-Key","in":"header","schema":{}},{"name":"q","in":"query","description":"which","schema":{"type":"string","enum":["x","y"]}}],"responses":{"200":{}}}}},
		"components":{"schemas":{"A":{"type":"object","required":["raw"],"properties":{"raw":{},"on":{"type":"boolean"},"of":{"$ref":"#/components/schemas/A"},
			"kind":{"type":"string","enum":["k"]}}},
			"Problem":{"type":"object","required":["code"],"properties":{"code":{"type":"string","enum":["c"]}}}}}}`
	got, err := forGenerator([]byte(parts))
	require.NoError(t, err)
	require.JSONEq(t, `{"openapi":"3.0.3","paths":{
		"/v1/a":{"post":{"parameters":[{"name":"q","in":"query","description":"which; one of x, y","schema":{"type":"string"}}],"responses":{"200":{}}}}},
		"components":{"schemas":{"A":{"type":"object","required":["raw"],"properties":{"raw":{"x-go-type":"json.RawMessage"},"on":{"type":"boolean"},
			"of":{"$ref":"#/components/schemas/A","x-go-type-skip-optional-pointer":false,"x-omitzero":false},"kind":{"type":"string","description":"one of k"}}},
			"Problem":{"type":"object","required":["code"],"properties":{"code":{"type":"string","enum":["c"],"x-go-type-name":"Code"}}}}}}`, string(got))
	_, err = forGenerator([]byte(`{"paths":{},"components":{"schemas":{"A":{"type":"object","properties":{"b":{"type":["string","null"]}}}}}}`))
	require.ErrorContains(t, err, "A.b is one of several types")
}
