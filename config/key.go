package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// EnvPrefix starts the name of every variable that is ours. TEMPORAL_* names
// belong to Temporal.
const EnvPrefix = "INTERLOCK_"

// otherVariables are variables with our prefix that are no configuration, with
// the reason why each of them is not.
var otherVariables = map[string]string{
	"INTERLOCK_TEMPORAL_CLI":  "the temporal binary that a local server is started from; read by make and by localtemporal, in development only",
	"INTERLOCK_TEST_POSTGRES": "the PostgreSQL that tests use; read by them alone",
}

// Key describes one setting.
type Key struct {
	Name   string // as in the file and in overrides: "log.level"
	Env    string // INTERLOCK_LOG_LEVEL
	Flag   string // log-level
	Doc    string
	Want   string // what is allowed
	Secret bool   // never printed
	url    bool   // a secret URL, of which scheme, host and path may be seen
	index  []int
}

// Keys lists every setting, in the order of [Config]. Help texts and flags are
// made from it, so that they cannot fall behind.
func Keys() []Key { return slices.Clone(allKeys) }

var allKeys = keysOf(reflect.TypeFor[Config](), "", nil)

func keysOf(t reflect.Type, prefix string, index []int) []Key {
	var out []Key
	for i := range t.NumField() {
		f := t.Field(i)
		name, at := prefix+f.Tag.Get("mapstructure"), append(slices.Clone(index), i)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, keysOf(f.Type, name+".", at)...)
			continue
		}
		out = append(out, Key{
			Name: name, Env: EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_")),
			Flag: strings.NewReplacer(".", "-", "_", "-").Replace(name), Doc: f.Tag.Get("doc"), Want: f.Tag.Get("want"),
			Secret: f.Type == reflect.TypeFor[Secret](), url: f.Tag.Get("show") == "url", index: at,
		})
	}
	return out
}

func keyNamed(name string) (Key, bool) {
	i := slices.IndexFunc(allKeys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return allKeys[i], true
}

func isSection(name string) bool {
	return slices.ContainsFunc(allKeys, func(k Key) bool { return strings.HasPrefix(k.Name, name+".") })
}

// show is the only way in which a value gets into a text. The value may be of
// another type than the key's, where it was refused.
func (k Key) show(value any) string {
	text := fmt.Sprint(value)
	if s, ok := value.(Secret); ok {
		text = s.Reveal()
	}
	switch {
	case k.Secret && text == "":
		return `""`
	case k.url:
		return maskedURL(text)
	case k.Secret:
		return masked
	case reflect.ValueOf(value).Kind() == reflect.String:
		return fmt.Sprintf("%q", withoutCredentials(text))
	default:
		return withoutCredentials(text)
	}
}

// Redacted lists all settings as "key: value" lines in a fixed order, secrets
// masked: fit for logs and for `config show`.
func (c Config) Redacted() string { return redact(reflect.ValueOf(c), allKeys) }

func redact(v reflect.Value, keys []Key) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s: %s\n", k.Name, k.show(v.FieldByIndex(k.index).Interface()))
	}
	return b.String()
}

// String is [Config.Redacted], so that no %v anywhere can print a secret.
func (c Config) String() string { return c.Redacted() }

// GoString does the same for %#v.
func (c Config) GoString() string { return c.Redacted() }
