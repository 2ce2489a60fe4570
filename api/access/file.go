package access

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"interlock/agent"
	"interlock/signals"
)

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// parse reads the text of a file, strictly: what is not understood might be the
// misspelt end of a right.
func parse(path string, data []byte) ([]Entry, error) {
	list, err := listOf(path, data)
	if err != nil || list == nil {
		return nil, err
	}
	var out []Entry
	for _, n := range list.Content {
		e, err := entryOf(n)
		if err != nil {
			return nil, wrong(path, n.Line, e.ID, err)
		}
		for _, other := range out {
			switch {
			case other.ID == e.ID:
				return nil, wrong(path, n.Line, e.ID, errors.New("the id is another token's"))
			case other.SHA256 == e.SHA256:
				return nil, wrong(path, n.Line, e.ID, fmt.Errorf("it has the hash of token %s: one token is one person's", other.ID))
			}
		}
		out = append(out, e)
	}
	return out, nil
}

func wrong(path string, line int, id string, err error) error {
	of := ""
	if id != "" {
		of = fmt.Sprintf(" (token %s)", id)
	}
	return agent.Errorf(agent.CodeInvalid, "%s line %d%s: %w", path, line, of, err)
}

// listOf is the node of the list tokens; nil where the file is empty.
func listOf(path string, data []byte) (*yaml.Node, error) {
	root, err := documentOf(path, data)
	if err != nil || root == nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode || len(root.Content) != 2 || root.Content[0].Value != "tokens" {
		return nil, wrong(path, root.Line, "", errors.New("the file has one key, tokens, which is a list"))
	}
	list := root.Content[1]
	if list.Kind == yaml.ScalarNode && list.Tag == "!!null" {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, wrong(path, list.Line, "", errors.New("tokens is a list"))
	}
	return list, nil
}

// documentOf is the top node of the one document.
func documentOf(path string, data []byte) (*yaml.Node, error) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err != nil {
		if len(bytes.TrimSpace(data)) == 0 {
			return nil, nil
		}
		return nil, agent.Errorf(agent.CodeInvalid, "%s is no YAML: %w", path, err)
	}
	if err := d.Decode(&more); err == nil {
		return nil, wrong(path, more.Line, "", errors.New("there is a second document"))
	}
	return doc.Content[0], nil
}

// entryOf reads one entry. What was read is returned with the error, to name it.
func entryOf(n *yaml.Node) (e Entry, err error) {
	if n.Kind != yaml.MappingNode {
		return e, errors.New("an entry has keys: id, sha256, tenant, subject, may, roles, expires")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content) && err == nil; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if seen[k.Value] {
			return e, fmt.Errorf("line %d: %s stands twice", k.Line, k.Value)
		}
		seen[k.Value] = true
		if err = e.set(k.Value, v); err != nil {
			err = fmt.Errorf("line %d: %w", k.Line, err)
		}
	}
	if err != nil {
		return e, err
	}
	return e, e.Check()
}

func (e *Entry) set(key string, v *yaml.Node) (err error) {
	switch key {
	case "id":
		e.ID, err = text(key, v)
	case "sha256":
		e.SHA256, err = text(key, v)
	case "tenant":
		e.Tenant, err = text(key, v)
	case "subject":
		e.Subject, err = text(key, v)
	case "may":
		var words []string
		words, err = texts(key, v)
		for _, w := range words {
			e.May = append(e.May, Role(w))
		}
	case "roles":
		e.Roles, err = texts(key, v)
	case "expires":
		var s string
		if s, err = text(key, v); err == nil {
			var at time.Time
			if at, err = time.Parse(time.RFC3339, s); err != nil {
				return fmt.Errorf("expires %q is no time such as 2027-01-31T00:00:00Z", s)
			}
			e.Expires = &at
		}
	default:
		return fmt.Errorf("unknown key %q: there are id, sha256, tenant, subject, may, roles, expires", key)
	}
	return err
}

func text(key string, v *yaml.Node) (string, error) {
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
		return "", fmt.Errorf("%s is one text", key)
	}
	return v.Value, nil
}

func texts(key string, v *yaml.Node) (out []string, err error) {
	if v.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s is a list of texts", key)
	}
	for _, n := range v.Content {
		s, err := text(key, n)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Check says what is wrong with an entry.
func (e Entry) Check() error {
	hash, err := hex.DecodeString(e.SHA256)
	switch {
	case !idForm.MatchString(e.ID):
		return fmt.Errorf("id %q is none: up to 64 letters, digits, dots, - and _", e.ID)
	case err != nil || len(hash) != 32 || strings.ToLower(e.SHA256) != e.SHA256:
		return errors.New("sha256 is no hash: 64 hexadecimal digits in lower case")
	case signals.CheckAddress(e.Tenant, "a", "k") != nil:
		return fmt.Errorf("tenant %q is none: 1 to 63 of a-z, 0-9, _ and -", e.Tenant)
	case !IsName(e.Subject):
		return fmt.Errorf("subject %q is none: 1 to 200 bytes without control characters and without spaces around it", e.Subject)
	case len(e.May) == 0:
		return fmt.Errorf("may is empty: it is one or more of %v", Roles)
	}
	for _, r := range e.May {
		if !slices.Contains(Roles, r) {
			return fmt.Errorf("may has %q, which is none of %v", r, Roles)
		}
	}
	for _, r := range e.Roles {
		if !IsName(r) {
			return fmt.Errorf("role %q is none: 1 to 200 bytes without control characters and without spaces around it", r)
		}
	}
	return nil
}

// IsName reports whether a person, or a role, can be called so.
func IsName(s string) bool {
	return agent.CheckName("name", s) == nil
}

// Add puts an entry into the file, which is made where there is none. Comments
// stay. It does not guard against another Add at the same time.
func Add(path string, e Entry) error {
	if err := e.Check(); err != nil {
		return agent.Errorf(agent.CodeInvalid, "%w", err)
	}
	return edit(path, func(list *yaml.Node, entries []Entry) error {
		if slices.ContainsFunc(entries, func(o Entry) bool { return o.ID == e.ID }) {
			return agent.Errorf(agent.CodeConflict, "%s has a token %s: revoke that first, or choose another id", path, e.ID)
		}
		list.Content = append(list.Content, nodeOf(e))
		list.Style = 0
		return nil
	})
}

// Remove takes an entry out of the file: the token, and every session that was
// begun with it, end within 5 seconds.
func Remove(path, id string) error {
	return edit(path, func(list *yaml.Node, entries []Entry) error {
		i := slices.IndexFunc(entries, func(o Entry) bool { return o.ID == id })
		if i < 0 {
			return agent.Errorf(agent.CodeNotFound, "%s has no token %s", path, id)
		}
		list.Content = slices.Delete(list.Content, i, i+1)
		return nil
	})
}

func edit(path string, change func(list *yaml.Node, entries []Entry) error) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agent.Errorf(agent.CodeInvalid, "the file of access tokens: %w", err)
	}
	entries, err := parse(path, data)
	if err != nil {
		return err
	}
	root, err := documentOf(path, data)
	if err != nil {
		return err
	}
	if len(entries) == 0 { // nothing to keep but an empty list
		root = &yaml.Node{Kind: yaml.MappingNode, HeadComment: "Access tokens of Interlock's HTTP API, by their hashes: interlock access new, list, revoke.",
			Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "tokens"}, {Kind: yaml.SequenceNode}}}
	}
	if err := change(root.Content[1], entries); err != nil {
		return err
	}
	var b bytes.Buffer
	w := yaml.NewEncoder(&b)
	w.SetIndent(2)
	if err := errors.Join(w.Encode(root), w.Close()); err != nil {
		return err
	}
	return replace(path, b.Bytes())
}

func nodeOf(e Entry) *yaml.Node {
	scalar := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	list := func(all []string) *yaml.Node {
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, s := range all {
			n.Content = append(n.Content, scalar(s))
		}
		return n
	}
	var may []string
	for _, r := range e.May {
		may = append(may, string(r))
	}
	n := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("id"), scalar(e.ID), scalar("sha256"), scalar(e.SHA256),
		scalar("tenant"), scalar(e.Tenant), scalar("subject"), scalar(e.Subject), scalar("may"), list(may)}}
	if len(e.Roles) > 0 {
		n.Content = append(n.Content, scalar("roles"), list(e.Roles))
	}
	if e.Expires != nil {
		n.Content = append(n.Content, scalar("expires"), scalar(e.Expires.UTC().Format(time.RFC3339)))
	}
	return n
}

// replace writes a file whole or not at all, for its owner only.
func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
