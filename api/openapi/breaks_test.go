package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"interlock/api"
)

const base = `{"paths":{"/v1/a":{"post":{
	"parameters":[{"name":"q","in":"query","schema":{"type":"string","enum":["x","y"]}}],
	"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/In"}}}},
	"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Out"}}}}}},
	"get":{"responses":{"200":{}}}}},
	"components":{"schemas":{
	"In":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"o":{"type":"string","maxLength":9},"w":{"type":"string"}}},
	"Out":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"code":{"type":"string","enum":["b","c"]},"list":{"type":"array","items":{"$ref":"#/components/schemas/Out"}}}}}}}`

func TestBreaks(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", ``, ``, ""},
		{"path", `"/v1/a"`, `"/v1/b"`, "GET /v1/a is gone; POST /v1/a is gone"},
		{"operation", `"get":`, `"head":`, "GET /v1/a is gone"},
		{"response", `"200":{}`, `"201":{}`, "GET /v1/a: response 200 is gone"},
		{"member of a response", `"id":{"type":"string"},`, ``, "POST /v1/a 200.id is gone"},
		{"member that may be absent", `["id"]`, `[]`, "POST /v1/a 200.id may be absent now"},
		{"a new member", `"id":{"type":"string"},`, `"id":{"type":"string"},"more":{"type":"string"},`, ""},
		{"type of a member", `"id":{"type":"string"}`, `"id":{"type":"integer"}`, "POST /v1/a 200.id was string and is integer"},
		{"enum value of a response", `["b","c"]`, `["b"]`, "POST /v1/a 200.code: the value c is gone"},
		{"a new enum value", `["b","c"]`, `["b","c","d"]`, ""},
		{"enum value of a parameter", `["x","y"]`, `["x"]`, "POST /v1/a q: the value y is gone"},
		{"parameter", `"name":"q"`, `"name":"r"`, "POST /v1/a: parameter q is gone"},
		{"needed parameter", `"in":"query"`, `"in":"query","required":true`, "POST /v1/a: parameter q is needed now"},
		{"needed member", `["n"]`, `["n","w"]`, "POST /v1/a request.w is needed now"},
		{"a member that is needed no more", `["n"]`, `[]`, ""},
		{"member of a request", `"w":{"type":"string"}`, `"v":{"type":"string"}`, "POST /v1/a request.w is gone"},
		{"type in a request", `"n":{"type":"integer"}`, `"n":{"type":"string"}`, "POST /v1/a request.n was integer and is string"},
		{"shorter", `"maxLength":9`, `"maxLength":8`, "POST /v1/a request.o may be 8 long at most now"},
		{"longer", `"maxLength":9`, `"maxLength":10`, ""},
		{"some values only", `"w":{"type":"string"}`, `"w":{"type":"string","enum":["a"]}`, "POST /v1/a request.w takes some values only now"},
		{"body", `"requestBody":{`, `"requestBody":{"required":true,`, "POST /v1/a: a body is needed now"},
		{"items", `"items":{"$ref":"#/components/schemas/Out"}`, `"items":{"type":"string"}`, "POST /v1/a 200.list[] was object and is string; POST /v1/a 200.list[].code is gone; POST /v1/a 200.list[].id is gone; POST /v1/a 200.list[].list is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, base, c.from)
			found, err := breaks([]byte(base), []byte(strings.Replace(base, c.from, c.to, 1)))
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Join(found, "; "))
		})
	}
	_, err := breaks([]byte("{"), []byte(base))
	require.Error(t, err)
}

// A breaking change is written only with a reason.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "openapi.json")
	require.NoError(t, write(path, ""))
	fresh, err := api.Document()
	require.NoError(t, err)
	more := strings.Replace(string(fresh), `"/v1/runs": {`, `"/v1/older": {"get": {"responses": {"200": {}}}}, "/v1/runs": {`, 1)
	require.NoError(t, os.WriteFile(path, []byte(more), 0o600))
	require.ErrorContains(t, write(path, ""), "REASON=")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, more, string(kept))
	require.NoError(t, write(path, "nobody has used it"))
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(fresh), string(written))
}
