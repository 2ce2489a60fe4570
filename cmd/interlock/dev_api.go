package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"interlock/agent"
	"interlock/api/access"
	"interlock/starter"
)

// devPerson is one of the people whose tokens dev prints.
type devPerson struct {
	variable, says string
	entry          access.Entry
	token          string
}

// devPeople are a product's backend, its customer, and those who decide.
func devPeople() []devPerson {
	one := func(variable, says, id, subject string, may access.Role, roles ...string) devPerson {
		return devPerson{variable: variable, says: says, entry: access.Entry{ID: "dev-" + id, Tenant: demoTenant, Subject: subject, May: []access.Role{may}, Roles: roles}}
	}
	return []devPerson{
		one("BACKEND", "a product backend", "backend", "shop", access.Starter),
		one("CUSTOMER", "the customer "+demoCustomer, "customer", demoCustomer, access.User),
		one("REVIEWER", "ann, role "+reviewer.Roles[0], "reviewer", "ann", access.Reviewer, reviewer.Roles...),
		one("OPERATOR", "olga, role "+agent.DefaultOperator, "operator", "olga", access.Operator, agent.DefaultOperator),
	}
}

// devTokens makes their tokens anew: those of the last time are believed no more,
// since nobody knows them.
func devTokens(file string) ([]devPerson, error) {
	people := devPeople()
	for i, p := range people {
		if err := access.Remove(file, p.entry.ID); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
			return nil, err
		}
		token, entry := access.New(p.entry)
		if err := access.Add(file, entry); err != nil {
			return nil, err
		}
		people[i].token = token
	}
	return people, nil
}

// openAPI makes the tokens and listens, in a stage that is open.
func (s *stage) openAPI(ctx context.Context) (*door, []devPerson, error) {
	s.settings.API.Access = filepath.Join(s.folder(), "access.yaml")
	if _, err := os.Stat(s.settings.API.Access); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(s.settings.API.Access, []byte("tokens: []\n"), 0o600); err != nil {
			return nil, nil, err
		}
	}
	people, err := devTokens(s.settings.API.Access)
	if err != nil {
		return nil, nil, err
	}
	d := &door{log: s.log, grace: s.settings.ShutdownTimeout}
	if err = d.admits(s.settings.API, s.log); err != nil {
		return nil, nil, err
	}
	signing, err := signerOf(s.settings)
	if err != nil {
		return nil, nil, err
	}
	runs := starter.New(s.client, append(signing, starter.WithReader(s.store), starter.WithTaskQueue(s.settings.TaskQueue))...)
	return d, people, d.open(ctx, s.settings, runs, s.store, s.client)
}

// welcome says how to use the pages and the API.
func welcome(d *door, people []devPerson) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Pages: http://%s/ for reviewers, users and operators: sign in with a token below.\n\n", d.public.Addr())
	fmt.Fprintf(&b, "HTTP API: docs/http.md is a walk through it. Its access tokens are made anew with each start:\n\nexport API=http://%s\n", d.public.Addr())
	for _, p := range people {
		fmt.Fprintf(&b, "export %s=%s # %s\n", p.variable, p.token, p.says)
	}
	b.WriteString("curl -s -H \"Authorization: Bearer $OPERATOR\" \"$API/v1/runs\"\n")
	return b.String()
}
