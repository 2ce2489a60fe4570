package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Registry holds the definitions that a worker serves: several agents, and of
// each as many versions as runs are pinned to.
type Registry struct {
	byName map[string][]*Definition // oldest first
}

// NewRegistry collects definitions. It reports the mistakes of all of them at
// once, and two definitions of one name and version.
func NewRegistry(defs ...*Definition) (*Registry, error) {
	r := &Registry{byName: map[string][]*Definition{}}
	var errs []error
	for _, d := range defs {
		errs = append(errs, d.Err())
		versions := r.byName[d.Name]
		at, dup := slices.BinarySearchFunc(versions, d.Version, func(d *Definition, v int) int { return d.Version - v })
		if dup {
			errs = append(errs, Errorf(CodeInvalid, "agent %s/v%d is given twice", d.Name, d.Version))
			continue
		}
		r.byName[d.Name] = slices.Insert(versions, at, d)
	}
	if len(defs) == 0 {
		errs = append(errs, Errorf(CodeInvalid, "no agents are given"))
	}
	return r, errors.Join(errs...)
}

// Names are the agents' names, sorted.
func (r *Registry) Names() []string { return sortedKeys(r.byName) }

// Versions are the definitions of one agent, oldest first.
func (r *Registry) Versions(name string) []*Definition { return r.byName[name] }

// Get is one version of an agent; version 0 is the newest.
func (r *Registry) Get(name string, version int) (*Definition, error) {
	all := r.Versions(name)
	if version == 0 && len(all) > 0 {
		return all[len(all)-1], nil
	}
	for _, d := range all {
		if d.Version == version {
			return d, nil
		}
	}
	var have []string
	for _, n := range r.Names() {
		for _, d := range r.Versions(n) {
			have = append(have, fmt.Sprintf("%s/v%d", n, d.Version))
		}
	}
	return nil, Errorf(CodeNotFound, "agent %s/v%d is not deployed on this worker; it serves %s", name, version, strings.Join(have, ", "))
}
