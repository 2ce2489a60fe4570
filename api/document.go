package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"interlock/agent"
)

// anyJSON is the schema of [agent.JSON]: any value, kept digit for digit.
type anyJSON struct{}

// Schema implements [huma.SchemaProvider].
func (anyJSON) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "any JSON value; numbers keep every digit"}
}

// newDocument makes the API's description, and what its routes are registered at.
// There is no page of documentation: it would load scripts of others.
func newDocument(mux humago.Mux) huma.API {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[agent.JSON](), reflect.TypeFor[anyJSON]())
	return humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "Interlock", Version: "1",
			Description: "Starts and steers runs of LLM agents, and decides at their gates. Names and codes are stable; members may be added to answers. See docs/http.md."},
			Components: &huma.Components{Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "an access token: interlock access new"}}}},
		Formats:       map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat: "application/json",
	})
}

// jsonFormat writes as encoding/json does, without escaping for HTML, and reads for
// validation whatever a number says: its digits are kept where they are decoded.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	},
	Unmarshal: func(data []byte, v any) error {
		into, ok := v.(*any)
		if !ok {
			return json.Unmarshal(data, v)
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err := d.Decode(into)
		*into = rough(*into)
		return err
	},
}

// rough is a value as the validation takes it: numbers as floats.
func rough(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64() // one that is too large is infinite, and of no bounded type
		return f
	case []any:
		for i := range v {
			v[i] = rough(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rough(v[k])
		}
	}
	return v
}

// finish adds to the description what huma cannot know, and writes it.
func finish(doc *huma.OpenAPI, routes []Route) ([]byte, error) {
	for _, r := range routes {
		item := doc.Paths[r.Path]
		op := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post}[r.Method]
		if op == nil {
			return nil, fmt.Errorf("%s %s is no route that the document can describe", r.Method, r.Path)
		}
		for _, p := range op.Parameters {
			p.Required = p.Required || p.Name == "Idempotency-Key" && r.Acts && !r.KeyInBody
		}
		if r.Created {
			op.Responses["201"] = &huma.Response{Description: "Created", Headers: op.Responses["200"].Headers, Content: op.Responses["200"].Content}
		}
	}
	code := doc.Components.Schemas.Map()["Problem"].Properties["code"]
	code.Enum = nil
	for _, c := range Codes() {
		code.Enum = append(code.Enum, string(c))
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, data, "", "  ")
	return append(bytes.TrimSpace(out.Bytes()), '\n'), err
}

// Codes are all codes of problems, in a fixed order.
func Codes() (out []agent.Code) {
	for _, p := range problems {
		out = append(out, p.code)
	}
	slices.SortFunc(out, func(a, b agent.Code) int { return strings.Compare(string(a), string(b)) })
	return out
}
