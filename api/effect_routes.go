package api

import (
	"context"
	"net/http"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/signals"
	"interlock/store"
)

// EffectLine is a row of the ledger.
type EffectLine struct {
	Key       string            `json:"key"`
	State     store.EffectState `json:"state"`
	Tool      string            `json:"tool"`
	Effect    agent.Effect      `json:"effect"`
	Address   string            `json:"address"`
	Agent     string            `json:"agent"`
	Version   int               `json:"version"`
	Step      string            `json:"step"`
	Args      agent.JSON        `json:"args,omitempty"`
	Result    agent.JSON        `json:"result,omitempty"`
	Reason    string            `json:"reason,omitempty" doc:"why it was refused, or why nobody knows, or how a person found out"`
	By        string            `json:"by,omitempty" doc:"the person who found out"`
	Attempts  int               `json:"attempts"`
	ClaimedAt time.Time         `json:"claimed_at"`
	SettledAt *time.Time        `json:"settled_at,omitempty"`
	DoubtAt   *time.Time        `json:"doubt_at,omitempty" doc:"since when a person must say whether it happened"`
	UndoneAt  *time.Time        `json:"undone_at,omitempty"`
}

func effectLineOf(e store.Effect) EffectLine {
	return EffectLine{Key: e.Key, State: e.State(), Tool: e.Tool, Effect: e.Kind, Address: e.Address, Agent: e.Agent, Version: e.Version, Step: e.Step, Args: e.Args,
		Result: e.Result, Reason: e.Reason, By: e.By, Attempts: e.Attempts, ClaimedAt: e.ClaimedAt, SettledAt: e.SettledAt, DoubtAt: e.DoubtAt, UndoneAt: e.UndoneAt}
}

// EffectPage is a page of the ledger.
type EffectPage struct {
	Effects []EffectLine `json:"effects"`
	Next    string       `json:"next_page_token,omitempty" doc:"absent on the last page"`
}

// ResolveBody is what a person has found out about an effect in doubt.
type ResolveBody struct {
	Happened  bool       `json:"happened"`
	Result    agent.JSON `json:"result,omitempty" doc:"as the tool would have answered it, where it happened"`
	Reason    string     `json:"reason" minLength:"1" maxLength:"1000" doc:"how they found out"`
	Unchecked bool       `json:"unchecked,omitempty" doc:"take the result although no worker has the agent's version"`
}

type effectsInput struct {
	Paged
	State string `query:"state" enum:"applied,refused,undone,not_applied,open,in_doubt"`
	Agent string `query:"agent" maxLength:"64"`
	Tool  string `query:"tool" maxLength:"200"`
}

type resolveInput struct {
	Effect string `path:"key" maxLength:"200" doc:"the effect's key"`
	Keyed
	Body ResolveBody
}

func (s *Server) effectRoutes() {
	handle(s, Route{Method: http.MethodGet, Path: "/v1/effects", ID: "list-effects", Tag: "effects", Summary: "List what the tools have done, oldest first", Act: access.EffectList}, s.listEffects)
	handle(s, Route{Method: http.MethodPost, Path: "/v1/effects/{key}/resolve", ID: "resolve-effect", Tag: "effects", Summary: "Say what became of an effect in doubt whose run has ended",
		Act: access.EffectResolve, Acts: true}, s.resolve)
}

func (s *Server) listEffects(ctx context.Context, c *call, in *effectsInput) (*body[EffectPage], error) {
	f := store.EffectFilter{State: store.EffectState(in.State), Agent: in.Agent, Tool: in.Tool, After: in.Token, Limit: in.Size + 1}
	rows, err := s.reads.Effects(ctx, c.caller.Tenant, f)
	if err != nil {
		return nil, err
	}
	rows, more := cut(rows, in.Size)
	page := EffectPage{Effects: []EffectLine{}}
	all := &store.Redactions{Reader: s.reads}
	for _, e := range rows {
		page.Effects = append(page.Effects, agent.Redacted(all.OfEffect(ctx, e), effectLineOf(e)))
	}
	if more {
		page.Next = rows[len(rows)-1].Cursor
	}
	return &body[EffectPage]{page}, nil
}

func (s *Server) resolve(ctx context.Context, c *call, in *resolveInput) (*body[EffectLine], error) {
	if _, err := s.reads.Effect(ctx, c.caller.Tenant, in.Effect); err != nil {
		return nil, err
	}
	b := in.Body
	if err := s.runs.ResolveEffect(ctx, signals.Resolution{Tenant: c.caller.Tenant, Key: in.Effect, Happened: b.Happened, Result: b.Result,
		Principal: c.principal(), Reason: b.Reason, Unchecked: b.Unchecked}); err != nil {
		return nil, err
	}
	e, err := s.reads.Effect(ctx, c.caller.Tenant, in.Effect)
	if err != nil {
		return nil, err
	}
	return &body[EffectLine]{agent.Redacted((&store.Redactions{Reader: s.reads}).OfEffect(ctx, e), effectLineOf(e))}, nil
}
