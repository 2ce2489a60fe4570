package agent

import (
	"errors"
	"fmt"
	"strings"
)

// Registry holds the definitions that a worker serves: several agents, and of
// each as many versions as runs are pinned to.
type Registry struct {
	byName map[string]map[int]*Definition
}

// NewRegistry collects definitions. It reports the mistakes of all of them at
// once, and two definitions of one name and version.
func NewRegistry(defs ...*Definition) (*Registry, error) {
	r := &Registry{byName: map[string]map[int]*Definition{}}
	var errs []error
	for _, d := range defs {
		errs = append(errs, d.Err())
		if r.byName[d.Name] == nil {
			r.byName[d.Name] = map[int]*Definition{}
		}
		if _, dup := r.byName[d.Name][d.Version]; dup {
			errs = append(errs, Errorf(CodeInvalid, "agent %s/v%d is given twice", d.Name, d.Version))
		}
		r.byName[d.Name][d.Version] = d
	}
	if len(defs) == 0 {
		errs = append(errs, Errorf(CodeInvalid, "no agents are given"))
	}
	return r, errors.Join(errs...)
}

// Names are the agents' names, sorted.
func (r *Registry) Names() []string { return sortedKeys(r.byName) }

// Versions are the definitions of one agent, oldest first.
func (r *Registry) Versions(name string) []*Definition {
	var out []*Definition
	newest := 0
	for v := range r.byName[name] { //workflowcheck:ignore a maximum is the same in any order
		newest = max(newest, v)
	}
	for v := 1; v <= newest; v++ {
		if d, ok := r.byName[name][v]; ok {
			out = append(out, d)
		}
	}
	return out
}

// Get is one version of an agent; version 0 is the newest.
func (r *Registry) Get(name string, version int) (*Definition, error) {
	all := r.Versions(name)
	if version == 0 && len(all) > 0 {
		return all[len(all)-1], nil
	}
	if d, ok := r.byName[name][version]; ok {
		return d, nil
	}
	var have []string
	for _, n := range r.Names() {
		for _, d := range r.Versions(n) {
			have = append(have, fmt.Sprintf("%s/v%d", n, d.Version))
		}
	}
	return nil, Errorf(CodeNotFound, "agent %s/v%d is not deployed on this worker; it serves %s", name, version, strings.Join(have, ", "))
}
