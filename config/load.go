package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Source names everything that Load reads; it reads nothing else.
type Source struct {
	// File is a YAML file. Empty: no file. A named file must exist.
	File string
	// Env is the environment in the form of os.Environ. A variable that is set
	// to nothing counts as not set.
	Env []string
	// Overrides are settings by key, from flags; they win over everything. An
	// empty value is a value.
	Overrides map[string]string
}

// Load merges defaults, file, environment and overrides, the later winning, and
// validates the result. A non-nil error is an *[Error] with every mistake, and
// then the Config must not be used.
func Load(src Source) (Config, error) {
	cfg, _, err := Explain(src)
	return cfg, err
}

// Setting is one key with its value as it may be shown, and where that was
// written.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Explain is [Load], and says of each setting where it comes from.
func Explain(src Source) (Config, []Setting, error) {
	l := loader{v: viper.New(), origin: map[string]string{}}
	l.file(src.File)
	l.env(src.Env)
	l.overrides(src.Overrides)
	cfg := l.decode()
	l.fromFile("store.dsn", &cfg.Store.DSN, "store.dsn_file", &cfg.Store.DSNFile)
	l.fromFile("model.api_key", &cfg.Model.APIKey, "model.api_key_file", &cfg.Model.APIKeyFile)
	l.oneStore(&cfg)
	for _, p := range cfg.problems() {
		if !l.reported(p.Key) {
			p.Origin = l.from(p.Key)
			l.found = append(l.found, p)
		}
	}
	settings := make([]Setting, 0, len(allKeys))
	for _, k := range allKeys {
		settings = append(settings, Setting{k.Name, k.show(reflect.ValueOf(cfg).FieldByIndex(k.index).Interface()), l.from(k.Name)})
	}
	return cfg, settings, errorOf(l.found)
}

type loader struct {
	v      *viper.Viper
	origin map[string]string // key -> where its winning value was written
	found  []Problem
}

func (l *loader) report(p Problem) { l.found = append(l.found, p) }

func (l *loader) reported(key string) bool {
	return slices.ContainsFunc(l.found, func(p Problem) bool { return p.Key == key })
}

func (l *loader) from(key string) string {
	if o := l.origin[key]; o != "" {
		return o
	}
	return "default"
}

func (l *loader) set(key string, value any, origin string) {
	l.v.Set(key, value)
	l.origin[key] = origin
}

// file walks the file as it is written. Viper's own reading is not enough: it
// lower-cases keys, so that of Level and level one wins by chance, and it takes
// "log.level" for a path.
func (l *loader) file(path string) {
	if path == "" {
		return
	}
	origin := "file " + path
	raw, err := readYAML(path)
	if err != nil {
		l.report(Problem{Key: "configuration file", Value: strconv.Quote(path), Origin: err.Error(), Want: "a readable YAML file of keys and values"})
		return
	}
	l.section(raw, "", origin)
}

func readYAML(path string) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is named by the caller
	}
	decoder, err := viper.NewCodecRegistry().Decoder("yaml")
	if err != nil {
		return nil, err
	}
	raw := map[string]any{}
	if err := decoder.Decode(data, raw); err != nil {
		return nil, errors.New(quotedByYAML.ReplaceAllString(err.Error(), masked))
	}
	return raw, nil
}

// quotedByYAML are pieces of the file in the parser's messages: they may be of
// a secret.
var quotedByYAML = regexp.MustCompile("(?s)`.*`|unknown anchor '.*'")

func (l *loader) section(raw map[string]any, prefix, origin string) {
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		key, value := prefix+name, raw[name]
		_, known := keyNamed(key)
		known = known && !strings.Contains(name, ".")
		nested, isMap := value.(map[string]any)
		switch {
		case known && value == nil:
			l.report(Problem{Key: key, Origin: origin, Want: "a value, or no such line"})
		case known:
			l.set(key, value, origin)
		case isSection(key) && !strings.Contains(name, ".") && value == nil: // all its keys are commented out
		case isSection(key) && !strings.Contains(name, ".") && isMap:
			l.section(nested, key+".", origin)
		case isSection(key):
			l.report(Problem{Key: key, Origin: origin, Want: "its keys indented below it"})
		default:
			l.report(Problem{Key: key, Origin: origin, Want: "a known key, in lower case: " + nearby(key)})
		}
	}
}

// env takes the variables with our prefix; of a repeated name the last counts,
// as in os/exec.
func (l *loader) env(environ []string) {
	given := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, EnvPrefix) {
			given[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(allKeys, func(k Key) bool { return k.Env == name })
		switch {
		case otherVariables[name] != "":
		case i < 0:
			l.report(Problem{Key: name, Origin: "environment", Want: "a known variable: " + nearby(name)})
		case given[name] != "":
			l.set(allKeys[i].Name, given[name], "environment "+name)
		}
	}
}

func (l *loader) overrides(values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := keyNamed(key); !ok {
			l.report(Problem{Key: key, Origin: "override", Want: "a known key: " + nearby(key)})
			continue
		}
		l.set(key, values[key], "override")
	}
}

// decode fills a Config key by key, so that each refused value is reported with
// its own key and the others are still looked at.
func (l *loader) decode() Config {
	cfg := Default()
	v := reflect.ValueOf(&cfg).Elem()
	for _, k := range allKeys {
		if !l.v.IsSet(k.Name) {
			continue
		}
		target := v.FieldByIndex(k.index)
		fresh := reflect.New(target.Type())
		if err := l.v.UnmarshalKey(k.Name, fresh.Interface(), strictly); err != nil {
			l.report(Problem{Key: k.Name, Value: k.show(l.v.Get(k.Name)), Origin: l.from(k.Name), Want: k.Want})
			continue
		}
		target.Set(fresh.Elem())
	}
	return cfg
}

// strictly turns off viper's conversions: true is not 1, 4.7 is not 4, and 25
// is not 25 nanoseconds.
func strictly(c *mapstructure.DecoderConfig) {
	c.WeaklyTypedInput = false
	c.ErrorUnused = true
	c.DecodeHook = strictHook
}

func strictHook(_, to reflect.Type, data any) (any, error) {
	text, isText := data.(string)
	switch {
	case to == reflect.TypeFor[time.Duration]():
		if !isText {
			return nil, errors.New("a duration needs its unit")
		}
		return time.ParseDuration(text)
	case to.Kind() == reflect.Int && isText:
		return strconv.Atoi(text)
	case to.Kind() == reflect.Int:
		return wholeNumber(data)
	case to.Kind() == reflect.Bool && isText:
		return boolean(text)
	case to.Kind() == reflect.String && !isText:
		return nil, errors.New("not a text")
	default:
		return data, nil
	}
}

func boolean(text string) (bool, error) {
	if !oneOf(text, "true", "false") {
		return false, errors.New("neither true nor false")
	}
	return text == "true", nil
}

func wholeNumber(data any) (int, error) {
	switch n := data.(type) {
	case int:
		return n, nil
	case int64:
		if n < math.MinInt || n > math.MaxInt {
			return 0, errors.New("too large")
		}
		return int(n), nil
	default:
		return 0, fmt.Errorf("%T is not a whole number", data)
	}
}

// nearby helps with a mistyped name: the known names that are closest to it, or
// all of them where none is near.
func nearby(name string) string {
	isEnv := strings.HasPrefix(name, EnvPrefix)
	var near, all []string
	for _, k := range allKeys {
		candidate := k.Name
		if isEnv {
			candidate = k.Env
		}
		all = append(all, candidate)
		if distance(strings.ToLower(name), strings.ToLower(candidate)) <= 3 {
			near = append(near, candidate)
		}
	}
	if len(near) > 0 {
		return strings.Join(near, ", ")
	}
	return "one of " + strings.Join(all, ", ")
}

// distance is Levenshtein's: how many letters differ.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
