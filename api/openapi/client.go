package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// methods are written by a template of ours: what the generator writes by itself
// answers with a raw response, and needs a library of its own at run time.
//
//go:embed methods.tmpl
var methods []byte

//go:embed head.tmpl
var head []byte

// none is a template of nothing; an empty file would not take the other's place.
const none = `{{""}}`

// generator is pinned in tools/go.mod. Where the options differ from its defaults:
// what may be absent is a zero value and no pointer (but see pointers), and every
// value of an enum has its type's name before it.
const generator = `package: client
generate: {models: true, client: true}
output-options:
  prefer-skip-optional-pointer: true
  prefer-skip-optional-pointer-with-omitzero: true
  skip-enum-validate: true
  name-normalizer: ToCamelCaseWithInitialisms
  user-templates: {imports.tmpl: %q, client.tmpl: %q, client-with-responses.tmpl: %q, request-bodies.tmpl: %[3]q}
compatibility: {always-prefix-enum-values: true}
`

// writeClient generates the Go client of a document, in the module at root.
func writeClient(root, document, path string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	if text, err = forGenerator(text); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "interlock-openapi-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string][]byte{"openapi.json": text, "head.tmpl": head, "methods.tmpl": methods, "none.tmpl": []byte(none),
		"config.yaml": fmt.Appendf(nil, generator, file("head.tmpl"), file("methods.tmpl"), file("none.tmpl"))} {
		if err := os.WriteFile(file(name), content, 0o600); err != nil {
			return err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	run := exec.Command("go", "tool", "-modfile=tools/go.mod", "oapi-codegen", "-config", file("config.yaml"), "-o", path, file("openapi.json"))
	run.Dir = root
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("oapi-codegen: %w: %s", err, out)
	}
	return nil
}

// pointers are optional values of which zero says something else than absent.
var pointers = []string{"Answer.confirm", "AnswerBody.confirm"}

// enums are those that become a type with constants. The others stay text: which
// words there are is said, and a new one breaks no client.
var enums = map[string]string{"Problem.code": "Code", "VerdictBody.verdict": "VerdictValue"}

// forGenerator is the document as the generator is to read it. It says the same:
// any JSON value stays the bytes that it is, keys of requests are the client's own
// affair, and streams, which the client reads by itself, are left out.
func forGenerator(document []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	doc["openapi"] = "3.0.3" // nothing in it needs 3.1, which the generator knows in part
	paths := doc["paths"].(map[string]any)
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			if forOperation(op.(map[string]any)) {
				delete(item.(map[string]any), method)
			}
		}
		if len(item.(map[string]any)) == 0 {
			delete(paths, path)
		}
	}
	for name, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		if err := forSchema(name, s.(map[string]any)); err != nil {
			return nil, err
		}
	}
	return json.Marshal(doc)
}

// forOperation leaves out headers, and reports whether it is a stream.
func forOperation(op map[string]any) (stream bool) {
	var kept []any
	for _, p := range list(op["parameters"]) {
		p := p.(map[string]any)
		if p["in"] == "header" {
			continue
		}
		inWords(p["schema"].(map[string]any), p)
		kept = append(kept, p)
	}
	op["parameters"] = kept
	content, _ := op["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)
	_, stream = content["text/event-stream"]
	return stream
}

func list(v any) []any { l, _ := v.([]any); return l }

// inWords takes an enum away, and says it.
func inWords(s, says map[string]any) {
	values := list(s["enum"])
	if values == nil {
		return
	}
	delete(s, "enum")
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprint(v))
	}
	doc := "one of " + strings.Join(words, ", ")
	if old, _ := says["description"].(string); old != "" {
		doc = old + "; " + doc
	}
	says["description"] = doc
}

// forSchema says of a schema, and of those in it, how they are in Go.
func forSchema(at string, s map[string]any) error {
	if _, text := s["type"].(string); s["type"] != nil && !text || s["anyOf"] != nil || s["oneOf"] != nil || s["allOf"] != nil {
		return fmt.Errorf("%s is one of several types: say in api/openapi/client.go what the Go client makes of it", at)
	}
	if name, ok := enums[at]; ok {
		s["x-go-type-name"] = name
	} else {
		inWords(s, s)
	}
	if s["type"] == nil && s["$ref"] == nil {
		s["x-go-type"] = "json.RawMessage"
	}
	if items, ok := s["items"].(map[string]any); ok {
		if err := forSchema(at+"[]", items); err != nil {
			return err
		}
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		return forSchema(at+"{}", more)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		p, at := p.(map[string]any), at+"."+name
		if err := forSchema(at, p); err != nil {
			return err
		}
		if !slices.Contains(list(s["required"]), any(name)) && (p["$ref"] != nil || slices.Contains(pointers, at)) {
			p["x-go-type-skip-optional-pointer"], p["x-omitzero"] = false, false
		}
	}
	return nil
}
