package notice

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"interlock/agent"
)

// Rereads is how soon a change of the file of targets counts.
const Rereads = 5 * time.Second

// File is a file of targets, read anew when the last look is older than [Rereads].
// While it cannot be read, or has a mistake, nobody's target is known: what is to be
// told waits.
type File struct {
	path string
	env  func(string) (string, bool)

	mu   sync.Mutex
	last []Target
	at   time.Time
}

// Open reads the file, which must be right. env is where env:NAME is looked up,
// [os.LookupEnv] where nil.
func Open(path string, env func(string) (string, bool)) (*File, error) {
	if env == nil {
		env = os.LookupEnv
	}
	f := &File{path: path, env: env}
	if _, err := f.Targets(); err != nil {
		return nil, err
	}
	return f, nil
}

// Targets are those that the file names now. Its callers change none of them.
func (f *File) Targets() ([]Target, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.at.IsZero() && time.Since(f.at) < Rereads {
		return f.last, nil
	}
	began := time.Now() // a change while it is read is seen in time, too
	targets, err := Read(f.path, f.env)
	if err != nil {
		return nil, err
	}
	f.last, f.at = targets, began
	return targets, nil
}

// Read reads a file of targets and the secrets that it names. Every mistake in it is
// told, with the entry that has it.
func Read(path string, env func(string) (string, bool)) ([]Target, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, agent.Errorf(agent.CodeInvalid, "there is no file of targets at %s: notices.targets names it", path)
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalid, "the file of targets: %w", err)
	}
	targets, mistakes := parse(content, env)
	if len(mistakes) > 0 {
		return nil, agent.Errorf(agent.CodeInvalid, "the file of targets %s: %d to mend\n  %s", path, len(mistakes), strings.Join(mistakes, "\n  "))
	}
	return targets, nil
}

func parse(content []byte, env func(string) (string, bool)) (targets []Target, mistakes []string) {
	var whole struct {
		Targets []yaml.Node `yaml:"targets"`
	}
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	err := d.Decode(&whole)
	if err == nil {
		if err = d.Decode(new(yaml.Node)); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("it holds more than one document")
		}
	}
	switch {
	case errors.Is(err, io.EOF) || err == nil && whole.Targets == nil:
		return nil, []string{"it names no targets: write targets: and a list"}
	case err != nil:
		return nil, yamlMistakes(err)
	}
	seen := map[string]bool{}
	for i := range whole.Targets {
		t, found := entry(&whole.Targets[i], env)
		where := fmt.Sprintf("targets[%d]", i)
		if t.Name != "" {
			where = fmt.Sprintf("target %q (line %d)", t.Name, whole.Targets[i].Line)
		}
		if t.Name != "" && seen[t.Name] {
			found = append(found, "there is another target of this name")
		}
		seen[t.Name] = true
		for _, m := range found {
			mistakes = append(mistakes, where+": "+m)
		}
		targets = append(targets, t)
	}
	return targets, mistakes
}

// entry reads one target, and says all that is wrong with it.
func entry(node *yaml.Node, env func(string) (string, bool)) (t Target, mistakes []string) {
	if node.Kind != yaml.MappingNode {
		return t, []string{"want its keys indented below it: " + strings.Join(keys, ", ")}
	}
	for i := 0; i < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains(keys, key.Value) {
			mistakes = append(mistakes, fmt.Sprintf("line %d: there is no key %q, but %s", key.Line, plain(key.Value, 60), strings.Join(keys, ", ")))
		}
	}
	if err := node.Decode(&t); err != nil {
		return t, append(mistakes, yamlMistakes(err)...)
	}
	return t, append(mistakes, t.check(env)...)
}

// keys are those of an entry.
var keys = []string{"name", "kind", "url", "secrets", "kinds", "tenants", "agents", "roles", "titles", "allow_private",
	"smtp", "from", "to", "user", "password_file"}

// quoted are pieces of the file in the parser's messages: they may be of a secret.
var quoted = regexp.MustCompile("(?s)`.*`|unknown anchor '.*'")

func yamlMistakes(err error) (out []string) {
	if several, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, text := range several.Errors {
			text, _, _ = strings.Cut(text, " in type ") // of ours
			out = append(out, quoted.ReplaceAllString(text, "[redacted]"))
		}
		return out
	}
	return []string{quoted.ReplaceAllString(err.Error(), "[redacted]")}
}
