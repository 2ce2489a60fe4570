package notice

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"interlock/agent"
)

// hiddenWord is in every secret of these tests: it may be in no text.
const hiddenWord = "S3CR3T"

// webhookSecret is one that has the word in its clear text.
const webhookSecret = "whsec_S3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR3TS3CR"

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func noEnv(string) (string, bool) { return "", false }

func TestRead(t *testing.T) {
	dir := t.TempDir()
	hook, password := write(t, dir, "hook", webhookSecret+"\n"), write(t, dir, "password", hiddenWord)
	path := write(t, dir, "targets.yaml", `targets:
  - name: ops
    kind: webhook
    url: https://hooks.example.com/in?key=S3CR3T
    secrets: [file:`+hook+`, env:HOOK_NEXT]
    kinds: [gate.opened, step.in_doubt]
    tenants: [acme]
    agents: [refund]
    roles: [refunds]
    titles: true
  - {name: chat, kind: slack, url: "env:SLACK"}
  - name: mail
    kind: mail
    smtp: mail.example.com:587
    from: Interlock <interlock@example.com>
    to: [ops@example.com]
    user: interlock
    password_file: `+password+`
`)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"HOOK_NEXT": webhookSecret, "SLACK": "https://hooks.slack.com/services/T0/B0/S3CR3T"}[name]
		return v, ok
	}
	targets, err := Read(path, env)
	require.NoError(t, err)
	require.Len(t, targets, 3)
	ops, ok := Find(targets, "ops")
	require.True(t, ok)
	require.Equal(t, []secret{webhookSecret, webhookSecret}, ops.secrets)
	require.Equal(t, []Kind{GateOpened, StepInDoubt}, ops.Kinds)
	require.True(t, ops.Titles)
	_, ok = Find(targets, "nobody")
	require.False(t, ok)
	where := []string{}
	for _, target := range targets {
		where = append(where, target.Where())
		j, err := json.Marshal(target)
		require.NoError(t, err)
		for _, text := range []string{string(j), fmt.Sprintf("%v %+v %#v %s %q %d", target, target, target, target, target.secrets, target.secrets), target.Where()} {
			require.NotContains(t, text, hiddenWord)
		}
	}
	require.Equal(t, []string{"https://hooks.example.com/in?…", "https://hooks.slack.com/…", "mail.example.com:587"}, where)
}

// Every mistake is told at once, with the entry that has it, and no secret.
func TestRead_Mistakes(t *testing.T) {
	dir := t.TempDir()
	hook := "file:" + write(t, dir, "hook", webhookSecret)
	short, empty, two := write(t, dir, "short", "whsec_S3CR3T"), write(t, dir, "empty", " \n"), write(t, dir, "two", "S3CR3T\nS3CR3T")
	good := func(name string) string {
		return "  - {name: " + name + ", kind: webhook, url: 'https://h.example.com/x', secrets: ['" + hook + "']}\n"
	}
	entry := func(rest string) string { return "targets:\n" + good("fine") + "  - {name: bad, " + rest + "}\n" }
	hookOf := func(rest string) string { return entry("kind: webhook, secrets: ['" + hook + "'], " + rest) }
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"nothing":             {"", []string{"it names no targets"}},
		"no list":             {"targets:\n", []string{"it names no targets"}},
		"another key":         {"target: []\n", []string{"target not found"}},
		"two documents":       {"targets: []\n---\ntargets: []\n", []string{"more than one document"}},
		"no YAML":             {"targets: [S3CR3T\n", []string{"1 to mend"}},
		"an anchor":           {"targets: *S3CR3T\n", []string{"[redacted]"}},
		"a word for an entry": {"targets: [S3CR3T]\n", []string{"targets[0]: want its keys indented"}},
		"a word for a list":   {hookOf("url: 'https://x.example', kinds: S3CR3T"), []string{`target "bad" (line 3): `, "[redacted]"}},
		"all at once": {"targets:\n" + good("Twice") + good("fine") + good("fine") + "  - {knd: 1, kind: pigeon, tenants: [Acme], agents: [a-b], kinds: [gate.opend], roles: ['']}\n",
			[]string{"9 to mend", `target "Twice" (line 2): name: "Twice" must be`, `target "fine" (line 4): there is another target of this name`, `targets[3]: line 5: there is no key "knd"`,
				"targets[3]: name:", `kinds: there is no kind "gate.opend" of notice, but [run.replied`, "tenants: ", "agents: ", "roles: one is empty", `kind: "pigeon" must be one of webhook, slack, mail`}},
		"a key twice":            {entry("kind: mail, kind: mail"), []string{"already defined"}},
		"no URL":                 {hookOf("titles: false"), []string{"url: want one such as https://"}},
		"http":                   {hookOf("url: 'http://x.example/S3CR3T'"), []string{"http only with allow_private"}},
		"another scheme":         {hookOf("url: 'ftp://x.example/S3CR3T', allow_private: true"), []string{"url: want https"}},
		"a user":                 {hookOf("url: 'https://u:S3CR3T@x.example'"), []string{"without user"}},
		"a fragment":             {hookOf("url: 'https://x.example/#S3CR3T'"), []string{"without user, fragment"}},
		"a private address":      {hookOf("url: 'https://169.254.169.254/S3CR3T'"), []string{"url: address 169.254.169.254 is not public"}},
		"no secret":              {entry("kind: webhook, url: 'https://x.example'"), []string{"secrets: want one or more"}},
		"a secret in the file":   {entry("kind: webhook, url: 'https://x.example', secrets: [" + webhookSecret + "]"), []string{"secrets[0]: secrets are not written here"}},
		"a secret that is none":  {entry("kind: webhook, url: 'https://x.example', secrets: ['file:" + short + "', 'file:" + empty + "', 'file:" + two + "', 'file:/nowhere/x', 'env:NONE', 'env:INTERLOCK_X']"), []string{"6 to mend", "secrets[0]: a webhook's secret is whsec_", "secrets[1]: file " + empty + " is empty", "more than one line", "/nowhere/x: no such file", `variable "NONE" is not set`, "secrets[5]: variables INTERLOCK_*"}},
		"Slack's URL":            {entry("kind: slack, url: 'https://hooks.slack.com/S3CR3T'"), []string{"whoever has it can write to the channel: secrets are not written here"}},
		"a key of another kind":  {hookOf("url: 'https://x.example', smtp: 'h:25', to: [a@b.example]"), []string{"smtp: a target of kind webhook has none", "to: a target of kind webhook has none"}},
		"mail without":           {entry("kind: mail"), []string{"smtp: want host:port", "from: want a mail address", "to: want one or more"}},
		"mail that is none":      {entry("kind: mail, smtp: '10.0.0.1:25', from: x, to: [y, 'a@b.example'], user: u"), []string{"smtp: address 10.0.0.1 is not public", "from: want", "to[0]: want", "want both, or neither"}},
		"mail without password":  {entry("kind: mail, smtp: 'x.example:25', from: a@b.example, to: [a@b.example], user: u, password_file: " + empty), []string{"password_file: file " + empty + " is empty"}},
		"a header in an address": {entry(`kind: mail, smtp: 'x.example:25', from: "a@b.example\r\nBcc: c@d.example", to: ["a@b.example\nBcc: c@d.example"]`), []string{"from: want", "to[0]: want"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(write(t, dir, "targets.yaml", c.text), noEnv)
			require.Equal(t, agent.CodeInvalid, agent.ErrorCode(err), "%v", err)
			for _, says := range c.says {
				require.ErrorContains(t, err, says)
			}
			require.NotContains(t, err.Error(), hiddenWord)
		})
	}
	_, err := Read(filepath.Join(dir, "absent"), noEnv)
	require.ErrorContains(t, err, "there is no file of targets")
}

// A change counts when the last look is old; a mistake lets nobody's target be known.
func TestFile_IsReadAnew(t *testing.T) {
	dir := t.TempDir()
	const one = "targets:\n  - {name: a, kind: slack, url: 'env:URL'}\n"
	env := func(string) (string, bool) { return "https://x.example/hook", true }
	path := write(t, dir, "targets.yaml", one)
	f, err := Open(path, env)
	require.NoError(t, err)
	write(t, dir, "targets.yaml", "targets: []\n")
	targets, err := f.Targets()
	require.NoError(t, err)
	require.Len(t, targets, 1, "it was read a moment ago")
	f.at = time.Now().Add(-Rereads)
	targets, err = f.Targets()
	require.NoError(t, err)
	require.Empty(t, targets)
	write(t, dir, "targets.yaml", "x")
	f.at = time.Now().Add(-Rereads)
	for range 2 {
		_, err = f.Targets()
		require.Error(t, err)
	}
	write(t, dir, "targets.yaml", one)
	targets, err = f.Targets()
	require.NoError(t, err)
	require.Len(t, targets, 1)
}

func TestExampleIsRight(t *testing.T) {
	secrets := map[string]string{"OPS_HOOK_SECRET": webhookSecret, "REVIEWERS_SLACK_URL": "https://hooks.slack.com/services/x"}
	targets, err := Read("../config/targets.example.yaml", func(name string) (string, bool) { v, ok := secrets[name]; return v, ok })
	require.NoError(t, err)
	require.Len(t, targets, 3)
	require.Equal(t, Kinds, targets[0].Kinds, "it shows all")
}
