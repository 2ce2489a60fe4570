package replaytests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// step is the first place where two values differ. An absent value is "".
type step struct{ path, recorded, now string }

// diffPayloads compares arguments or results. JSON is compared by value, with
// numbers as they are written; all else byte by byte.
func diffPayloads(recorded, now []*commonpb.Payload) *step {
	for i := range min(len(recorded), len(now)) {
		d := diffPayload(recorded[i], now[i])
		if d == nil {
			continue
		}
		if len(recorded) > 1 {
			d.path = strings.TrimSuffix(fmt.Sprintf("[%d].%s", i, d.path), ".")
		}
		return d
	}
	if len(recorded) != len(now) {
		return &step{"number of arguments", fmt.Sprint(len(recorded)), fmt.Sprint(len(now))}
	}
	return nil
}

func diffPayload(recorded, now *commonpb.Payload) *step {
	was, is := string(recorded.GetMetadata()[converter.MetadataEncoding]), string(now.GetMetadata()[converter.MetadataEncoding])
	if was != is {
		return &step{"encoding", was, is}
	}
	a, okA := parse(recorded.GetData())
	b, okB := parse(now.GetData())
	if okA && okB && strings.HasPrefix(was, "json/") {
		return diffJSON("", a, b)
	}
	if i := firstByte(recorded.GetData(), now.GetData()); i >= 0 {
		return &step{fmt.Sprintf("byte %d", i), tail(recorded.GetData(), i), tail(now.GetData(), i)}
	}
	return nil
}

func parse(data []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // integers are exact at any size
	if err := d.Decode(&value); err != nil {
		return nil, false
	}
	return value, !d.More()
}

// firstByte is where two byte strings differ, -1 where they do not.
func firstByte(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func tail(data []byte, from int) string {
	return fmt.Sprintf("%x (of %d bytes)", data[from:min(from+16, len(data))], len(data))
}

func diffJSON(path string, recorded, now any) *step {
	switch a := recorded.(type) {
	case map[string]any:
		if b, ok := now.(map[string]any); ok {
			return diffObjects(path, a, b)
		}
	case []any:
		if b, ok := now.([]any); ok {
			return diffArrays(path, a, b)
		}
	default:
		if recorded == now && scalar(now) {
			return nil
		}
	}
	return &step{path, text(recorded), text(now)}
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// diffObjects looks at members with plain values first: that an event is of
// another type says more than what is in it. Hashes come last: that they differ
// follows from the rest.
func diffObjects(path string, recorded, now map[string]any) *step {
	all := maps.Clone(recorded)
	for name, v := range now {
		if _, ok := all[name]; !ok {
			all[name] = v
		}
	}
	rank := func(name string) int {
		switch {
		case name == "hash" || name == "before":
			return 2
		case scalar(all[name]):
			return 0
		}
		return 1
	}
	names := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		at := strings.TrimPrefix(path+"."+name, ".")
		a, was := recorded[name]
		b, is := now[name]
		switch {
		case !was:
			return &step{at, "", text(b)}
		case !is:
			return &step{at, text(a), ""}
		}
		if d := diffJSON(at, a, b); d != nil {
			return d
		}
	}
	return nil
}

func diffArrays(path string, recorded, now []any) *step {
	for i := range max(len(recorded), len(now)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(recorded):
			return &step{at, "", text(now[i])}
		case i >= len(now):
			return &step{at, text(recorded[i]), ""}
		}
		if d := diffJSON(at, recorded[i], now[i]); d != nil {
			return d
		}
	}
	return nil
}

// text is a value as it is shown in a message.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return clip(strings.TrimSpace(b.String()), 240)
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
