package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const hidden = "S3CR3T"

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestNoVerbShowsASecret(t *testing.T) {
	cfg := Default()
	cfg.Store = Store{DSN: "postgres://interlock:" + hidden + "@db.example/interlock?sslpassword=" + hidden}
	cfg.Model.APIKey = hidden
	for _, v := range []any{cfg, &cfg, cfg.Model, cfg.Store, &cfg.Model, cfg.Model.APIKey, []Secret{hidden}, map[string]Secret{"a": hidden}, struct{ s Secret }{hidden}.s} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%T", "%t", "%10.3s"} {
			text := fmt.Sprintf(verb, v)
			require.NotContains(t, text, hidden, verb)
			require.NotContains(t, text, fmt.Sprintf("%x", hidden), verb)
		}
		j, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(j), hidden)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		require.NotContains(t, log.String(), hidden)
	}
	require.Contains(t, cfg.Redacted(), "store.dsn: postgres://[redacted]@db.example/interlock?…\n")
	require.Contains(t, cfg.Redacted(), "model.api_key: [redacted]\n")
	require.Equal(t, hidden, cfg.Model.APIKey.Reveal())
	require.Equal(t, "%!", fmt.Sprintf("%v%%!", Secret("")), "that a secret is missing may be seen")
}

// Wherever a secret is written by mistake, the message does not repeat it.
func TestMistakesDoNotTellSecrets(t *testing.T) {
	dsn := "postgres://u:" + hidden + "@h:1/db"
	for name, src := range map[string]Source{
		"a DSN that is none":          {Env: []string{"INTERLOCK_STORE_DSN=u:" + hidden + "@h/db"}},
		"a DSN of another database":   {Env: []string{"INTERLOCK_STORE_DSN=mysql://u:" + hidden + "@h/db"}},
		"a DSN without a database":    {Env: []string{"INTERLOCK_STORE_DSN=postgres://u:" + hidden + "@h"}},
		"an unescaped password":       {Env: []string{"INTERLOCK_STORE_DSN=postgres://u:a/%" + hidden + "@h/db"}},
		"a DSN as path":               {Env: []string{"INTERLOCK_STORE_PATH=" + dsn}},
		"a DSN as file of it":         {Env: []string{"INTERLOCK_STORE_DSN_FILE=" + dsn}},
		"a DSN twice":                 {Env: []string{"INTERLOCK_STORE_DSN=" + dsn, "INTERLOCK_STORE_DSN_FILE=" + file(t, dsn)}},
		"a DSN and a path":            {Env: []string{"INTERLOCK_STORE_DSN=" + dsn, "INTERLOCK_STORE_PATH=x.db"}},
		"a list of DSNs":              {File: yamlFile(t, "store: {dsn: ["+hidden+"]}")},
		"a key as file of it":         {Env: []string{"INTERLOCK_MODEL_API_KEY_FILE=" + hidden, "INTERLOCK_MODEL_NAME=m"}},
		"a key with spaces":           {Env: []string{"INTERLOCK_MODEL_API_KEY=Bearer " + hidden, "INTERLOCK_MODEL_NAME=m"}},
		"a key of numbers":            {File: yamlFile(t, "model: {name: m, api_key: {k: "+hidden+"}}")},
		"a key for no model":          {Env: []string{"INTERLOCK_MODEL_API_KEY=" + hidden}},
		"a key in the URL":            {Env: []string{"INTERLOCK_MODEL_BASE_URL=https://" + hidden + "@h/v1", "INTERLOCK_MODEL_NAME=m"}},
		"two lines in the key's file": {Env: []string{"INTERLOCK_MODEL_API_KEY_FILE=" + file(t, "a\n"+hidden), "INTERLOCK_MODEL_NAME=m"}},
		"a file of nothing but it":    {File: yamlFile(t, hidden)},
		"an anchor":                   {File: yamlFile(t, "model: {name: m, api_key: *"+hidden+"}")},
		"another type":                {File: yamlFile(t, "model: {name: m, api_key: !!int "+hidden+"}")},
		"a value below the key":       {File: yamlFile(t, "model: {name: m, api_key: \n  - "+hidden+"}")},
	} {
		cfg, settings, err := Explain(src)
		require.Error(t, err, name)
		shown := fmt.Sprintf("%v %+v %#v %v", err, err, settings, cfg)
		require.NotContains(t, shown, hidden, name)
	}
}

func TestSecretsFromFiles(t *testing.T) {
	dsn := "postgres://u:" + hidden + "@h:5432/db"
	cfg, settings, err := Explain(Source{Env: []string{"INTERLOCK_STORE_DSN_FILE=" + file(t, dsn+"\n"),
		"INTERLOCK_MODEL_API_KEY_FILE=" + file(t, " "+hidden+"\r\n"), "INTERLOCK_MODEL_NAME=m"}})
	require.NoError(t, err)
	require.Equal(t, dsn, cfg.Store.DSN.Reveal())
	require.Equal(t, hidden, cfg.Model.APIKey.Reveal())
	require.Empty(t, cfg.Store.Path, "the default of the path is no second database")
	require.NoError(t, cfg.Validate())
	byKey := map[string]Setting{}
	for _, s := range settings {
		byKey[s.Key] = s
	}
	require.Equal(t, "postgres://[redacted]@h:5432/db", byKey["store.dsn"].Value)
	require.Equal(t, "file "+cfg.Store.DSNFile, byKey["store.dsn"].Origin)
	require.Equal(t, Setting{"store.path", `""`, "not used"}, byKey["store.path"])
	require.Equal(t, Setting{"log.level", `"info"`, "default"}, byKey["log.level"])
	require.Equal(t, Setting{"model.name", `"m"`, "environment INTERLOCK_MODEL_NAME"}, byKey["model.name"])
}

func TestOneStore(t *testing.T) {
	const dsn = "INTERLOCK_STORE_DSN=postgres://h/db"
	for name, src := range map[string]Source{
		"in one layer":  {Env: []string{dsn, "INTERLOCK_STORE_PATH=x.db"}},
		"in two layers": {Env: []string{dsn}, File: yamlFile(t, "store: {path: x.db}")},
		"by a flag":     {Env: []string{dsn}, Overrides: map[string]string{"store.path": "x.db"}},
		"the default":   {Env: []string{dsn}, Overrides: map[string]string{"store.path": ".interlock/interlock.db"}},
	} {
		_, err := Load(src)
		found := problemsOf(t, err)
		require.Contains(t, found["store.dsn"].Want, "store.path or store.dsn, not both; store.path is set too, by ", name)
		require.Len(t, found, 1, name)
	}
	cfg, err := Load(Source{Env: []string{dsn}, Overrides: map[string]string{"store.path": ""}})
	require.NoError(t, err, "a path that is set to nothing is none")
	require.Empty(t, cfg.Store.Path)

	both := Default()
	both.Store.DSN = "postgres://h/db"
	require.ErrorContains(t, both.Validate(), "not both")
}

func TestWhichModel(t *testing.T) {
	for want, m := range map[string]Model{Scripted: {}, OpenAI: {Name: "m"}, "other": {Provider: "other", Name: "m"}} {
		require.Equal(t, want, m.Serves())
	}
	require.Equal(t, Scripted, Model{Provider: Scripted, Name: "m"}.Serves())
	for _, env := range []string{"INTERLOCK_MODEL_PROVIDER=openai", "INTERLOCK_MODEL_BASE_URL=http://localhost:11434/v1", "INTERLOCK_MODEL_API_KEY=k"} {
		_, err := Load(Source{Env: []string{env}})
		require.Contains(t, problemsOf(t, err), "model.name", env)
	}
}

// Every key refuses something, and says what it wants instead.
func TestEveryKeyRefusesWhatIsWrong(t *testing.T) {
	bad := map[string][]string{
		"store.path":            {"", "dir/", "postgres://h/db", "a\x00b"},
		"store.dsn":             {"x", "host=h dbname=d", "mysql://h/db", "postgres://h", "postgres://h/ db", "postgres://%zz/db"},
		"store.dsn_file":        {"/nowhere/at/all", "/"},
		"task_queue":            {"", " a", "a ", "/_sys/x", strings.Repeat("x", 201)},
		"tenant":                {"Acme", "a/b", "-a", strings.Repeat("a", 64)},
		"model.provider":        {"openAI", "anthropic"},
		"model.name":            {"a b", "a\n"},
		"model.base_url":        {"api.openai.com/v1", "ftp://h", "https://", "https://u@h/v1", "https://h/v1?x=1", "https://h/v1#a"},
		"model.api_key":         {"a b", "a\n", "\x01"},
		"model.api_key_file":    {"/nowhere/at/all"},
		"model.stream":          {"1", "yes", "True", ""},
		"model.max_output":      {"-1", "1000001", "many", "1.5"},
		"log.level":             {"", "loud", "INFO"},
		"log.format":            {"", "xml"},
		"shutdown_timeout":      {"", "25", "999ms", "61m", "-1s"},
		"worker.max_activities": {"-1", "100001", "x"},
		"worker.cache_size":     {"-2", "1000001", "0x1"},
		"tokens.issuer":         {"a b", "a\n"},
		"tokens.audience":       {"a b", "a\n"},
		"tokens.keys":           nil, // looked for when it is used, as what follows
		"tokens.sign_with":      nil,
		"api.listen":            {"", "8088", "h", "h:p", "h:99999", "h h:80"},
		"api.admin_listen":      {"", "8089", "127.0.0.1:8088"},
		"api.access":            {"dir/", "a\x00b"},
		"api.session_key_file":  {"dir/"},
		"api.rate":              {"0", "-1", "100001", "x"},
		"temporal.config_file":  nil,
		"temporal.profile":      {" x"},
	}
	for _, k := range Keys() {
		values, listed := bad[k.Name]
		require.True(t, listed, k.Name)
		for _, v := range values {
			overrides := map[string]string{"model.name": "m"}
			overrides[k.Name] = v
			_, err := Load(Source{Overrides: overrides})
			found := problemsOf(t, err)
			require.Contains(t, found, k.Name, "%q", v)
			require.Len(t, found, 1, "%s = %q", k.Name, v)
			require.Equal(t, k.Want, found[k.Name].Want)
			require.Contains(t, found[k.Name].Origin, "override")
		}
	}
}
