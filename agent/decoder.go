package agent

import (
	"encoding/json"
	"reflect"
)

// Decoder reads JSON from outside into T: strictly, with the schema of T, and
// with errors that say where and what to do.
type Decoder[T any] struct{ schema *schema }

// NewDecoder makes the decoder of a type. It panics on a type that has no
// schema: make decoders when the program starts.
func NewDecoder[T any]() Decoder[T] {
	s, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		panic(err)
	}
	return Decoder[T]{s}
}

// Schema is the type's JSON Schema.
func (d Decoder[T]) Schema() JSON { return d.schema.text }

// Decode reads one value. Its error has CodeInvalid.
func (d Decoder[T]) Decode(data []byte) (T, error) {
	var out T
	j, err := d.schema.arguments(string(data), reflect.TypeFor[T]())
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(j, &out)
}
