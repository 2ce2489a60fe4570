package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func yamlFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "interlock.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func problemsOf(t *testing.T, err error) map[string]Problem {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	out := map[string]Problem{}
	for _, p := range e.Problems {
		require.NotContains(t, out, p.Key, "reported twice")
		out[p.Key] = p
	}
	return out
}

func TestNothingGivenIsTheDefault(t *testing.T) {
	cfg, err := Load(Source{})
	require.NoError(t, err)
	require.Equal(t, Default(), cfg)
	require.NoError(t, Default().Validate())
}

func TestExampleFileShowsTheDefaults(t *testing.T) {
	cfg, err := Load(Source{File: "interlock.example.yaml"})
	require.NoError(t, err)
	require.Equal(t, Default(), cfg)
	raw, err := readYAML("interlock.example.yaml")
	require.NoError(t, err)
	for _, k := range Keys() {
		require.True(t, inFile(raw, k.Name), "%s is missing in the example", k.Name)
	}
}

func inFile(raw map[string]any, key string) bool {
	for i := range len(key) {
		if key[i] == '.' {
			nested, ok := raw[key[:i]].(map[string]any)
			return ok && inFile(nested, key[i+1:])
		}
	}
	_, ok := raw[key]
	return ok
}

func TestLaterLayersWin(t *testing.T) {
	file := yamlFile(t, "task_queue: f\nlog: {level: warn, format: json}\nstore: {path: f.db}\nshutdown_timeout: 5s\n")
	cfg, err := Load(Source{
		File:      file,
		Env:       []string{"INTERLOCK_TASK_QUEUE=e", "INTERLOCK_STORE_PATH=old.db", "INTERLOCK_STORE_PATH=e.db", "INTERLOCK_WORKER_CACHE_SIZE=0", "PATH=/bin"},
		Overrides: map[string]string{"store.path": "o.db", "worker.max_activities": "7"},
	})
	require.NoError(t, err)
	want := Default()
	want.TaskQueue, want.Log, want.Store.Path, want.ShutdownTimeout = "e", Log{Level: "warn", Format: "json"}, "o.db", 5*time.Second
	want.Worker = Worker{MaxActivities: 7, CacheSize: 0}
	require.Equal(t, want, cfg)
}

func TestEveryMistakeIsReportedAtOnce(t *testing.T) {
	file := yamlFile(t, "task_que: x\nlog: {level: loud, Format: json, formt: json}\nstore: here.db\nshutdown_timeout: 25\n"+
		"worker: {max_activities: 4.7, cache_size: true}\nlog.format: json\ntemporal: {profile: }\n")
	_, err := Load(Source{
		File:      file,
		Env:       []string{"INTERLOCK_LOG_FROMAT=json", "INTERLOCK_TASK_QUEUE= padded", "INTERLOCK_TEMPORAL_CLI=/bin/temporal"},
		Overrides: map[string]string{"store.paht": "x"},
	})
	found := problemsOf(t, err)
	keys := make([]string, 0, len(found))
	for k := range found {
		keys = append(keys, k)
	}
	require.ElementsMatch(t, []string{"task_que", "log.level", "log.Format", "log.formt", "store", "shutdown_timeout",
		"worker.max_activities", "worker.cache_size", "log.format", "temporal.profile", "INTERLOCK_LOG_FROMAT", "task_queue", "store.paht"}, keys)
	require.Equal(t, `log.level = "loud" (file `+file+`): want one of debug, info, warn, error`, found["log.level"].String())
	require.Equal(t, "shutdown_timeout = 25 (file "+file+"): want a duration with its unit, such as 25s, from 1s to 1h", found["shutdown_timeout"].String())
	require.Equal(t, `task_queue = " padded" (environment INTERLOCK_TASK_QUEUE): want `+found["task_queue"].Want, found["task_queue"].String())
	require.Equal(t, "a known variable: INTERLOCK_LOG_FORMAT", found["INTERLOCK_LOG_FROMAT"].Want)
	require.Equal(t, "a known key, in lower case: log.format", found["log.formt"].Want)
	require.Contains(t, err.Error(), "configuration: 13 to mend\n")
}

func TestFileThatCannotBeRead(t *testing.T) {
	_, err := Load(Source{File: "nowhere.yaml"})
	require.ErrorContains(t, err, `"nowhere.yaml" (no such file or directory)`)
	_, err = Load(Source{File: yamlFile(t, "- a list\n")})
	require.ErrorContains(t, err, "want a readable YAML file")
	_, err = Load(Source{File: yamlFile(t, "log: {level: info}\nlog: {level: warn}\n")})
	require.ErrorContains(t, err, "already defined")
	_, err = Load(Source{File: yamlFile(t, "")})
	require.NoError(t, err)
}

func TestTypesAreStrictInFilesAndParsedInVariables(t *testing.T) {
	for _, text := range []string{"task_queue: 5", "task_queue: [a]", "worker: {cache_size: 99999999999999999999}", "log: {level: {a: b}}", "shutdown_timeout: soon"} {
		_, err := Load(Source{File: yamlFile(t, text)})
		require.Error(t, err, text)
	}
	for _, env := range []string{"INTERLOCK_WORKER_CACHE_SIZE=1.0", "INTERLOCK_WORKER_CACHE_SIZE=0x10", "INTERLOCK_SHUTDOWN_TIMEOUT=25"} {
		_, err := Load(Source{Env: []string{env}})
		require.Error(t, err, env)
	}
	cfg, err := Load(Source{Env: []string{"INTERLOCK_SHUTDOWN_TIMEOUT=1m", "INTERLOCK_LOG_LEVEL="}})
	require.NoError(t, err)
	require.Equal(t, time.Minute, cfg.ShutdownTimeout)
	require.Equal(t, "info", cfg.Log.Level, "set to nothing is not set")
}

func TestValidateNamesEveryKey(t *testing.T) {
	found := problemsOf(t, Config{Worker: Worker{MaxActivities: -1, CacheSize: -2}, Temporal: Temporal{Profile: " "}}.Validate())
	require.Len(t, found, 11)
	for _, p := range found {
		require.NotEmpty(t, p.Want)
	}
	_, err := Load(Source{Overrides: map[string]string{"store.path": ""}})
	require.EqualError(t, err, "configuration: 1 to mend\n  store.path = \"\" (override): want the path of a file; the URL of a PostgreSQL database belongs into store.dsn")
}

func TestKeysAreDescribedAndUnambiguous(t *testing.T) {
	names := map[string]string{}
	for _, k := range Keys() {
		require.NotEmpty(t, k.Doc, k.Name)
		require.NotEmpty(t, k.Want, k.Name)
		require.Empty(t, names[k.Env], "%s has the variable of another key", k.Name)
		require.Empty(t, otherVariables[k.Env])
		names[k.Env] = k.Name
	}
	require.Equal(t, "worker.max_activities", names["INTERLOCK_WORKER_MAX_ACTIVITIES"])
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	type withSecret struct {
		Open  string `mapstructure:"open"`
		Token Secret `mapstructure:"token"`
	}
	keys := keysOf(reflect.TypeFor[withSecret](), "", nil)
	require.Equal(t, "open: \"a\"\ntoken: [redacted]\n", redact(reflect.ValueOf(withSecret{"a", "hunter2"}), keys))
	require.Equal(t, `""`, keys[1].show(""), "that a secret is missing may be seen")

	require.Equal(t, Default().Redacted(), fmt.Sprintf("%+v", Default()))
	require.Equal(t, Default().Redacted(), fmt.Sprintf("%#v", Default()))
	require.Contains(t, Default().Redacted(), "shutdown_timeout: 25s\n")
}
