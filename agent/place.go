package agent

import (
	"slices"
	"strconv"
	"strings"
)

// pointer is the JSON pointer (RFC 6901) of a place, with long keys cut.
func pointer(keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(clip(k, maxKeyShown)))
	}
	return b.String()
}

const maxKeyShown = 60

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// at is a place in a value; nil is the whole.
type at struct {
	up    *at
	key   string
	index int // of an element; -1 of a member
}

func (a *at) member(key string) *at { return &at{a, key, -1} }
func (a *at) element(i int) *at     { return &at{a, "", i} }

// String is the place as a JSON pointer.
func (a *at) String() string {
	var keys []string
	for ; a != nil; a = a.up {
		if a.index >= 0 {
			keys = append(keys, strconv.Itoa(a.index))
		} else {
			keys = append(keys, a.key)
		}
	}
	slices.Reverse(keys)
	return pointer(keys)
}
