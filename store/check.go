package store

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"interlock/agent"
)

// What is here needs no database. Every driver asks it first, so that all of
// them refuse the same input alike, as invalid.

// CheckAppend refuses what no journal takes: events out of sequence or of
// another tenant, times finer than microseconds, data that is not canonical
// JSON, a run whose first event is not its start. It returns the hash of the
// chain at each event.
func CheckAppend(ref RunRef, b agent.Batch) (hashes []string, err error) {
	if err := CheckNamed("tenant", ref.Tenant, "address", ref.Address, "first run id", ref.FirstRunID, "branch", ref.Branch); err != nil {
		return nil, err
	}
	if err := CheckText("status", string(b.Head.Status), "reason", b.Head.Reason, "phase", b.Head.Phase); err != nil {
		return nil, err
	}
	before := b.Before
	for i, e := range b.Events {
		started := e.Type == agent.EventStarted
		switch {
		case b.First < 1 || e.Seq != b.First+int64(i):
			return nil, agent.Errorf(agent.CodeInvalid, "event %d stands where event %d should, in a batch from %d", e.Seq, b.First+int64(i), b.First)
		case e.Tenant != ref.Tenant:
			return nil, agent.Errorf(agent.CodeInvalid, "event %d is of tenant %q, the run of %q", e.Seq, e.Tenant, ref.Tenant)
		case started != (e.Seq == 1):
			return nil, agent.Errorf(agent.CodeInvalid, "event %d is %s: the first event of a run, and no other, is %s", e.Seq, e.Type, agent.EventStarted)
		case !e.At.Equal(e.At.Truncate(time.Microsecond)):
			return nil, agent.Errorf(agent.CodeInvalid, "event %d has a time finer than microseconds", e.Seq)
		}
		if started {
			switch salt, err := agent.SaltOf(e); {
			case err != nil:
				return nil, err
			case salt != b.Salt:
				return nil, agent.Errorf(agent.CodeInvalid, "the batch is hashed with another salt than the one that its first event names")
			}
		}
		if err := CheckText("type", string(e.Type), "step", e.Step, "trace id", e.TraceID); err != nil {
			return nil, agent.Errorf(agent.CodeInvalid, "event %d: %w", e.Seq, err)
		}
		if err := checkJSON("data", e.Data); err != nil {
			return nil, agent.Errorf(agent.CodeInvalid, "event %d: %w", e.Seq, err)
		}
		before = e.Chain(b.Salt, before)
		hashes = append(hashes, before)
	}
	return hashes, nil
}

// Check refuses a claim that no ledger takes.
func (c Claim) Check() error {
	if err := CheckNamed("tenant", c.Tenant, "key", c.Key, "address", c.Address, "tool", c.Tool); err != nil {
		return err
	}
	if err := CheckText("scope", c.Scope, "agent", c.Agent, "effect", string(c.Kind), "step", c.Step, "branch", c.Branch); err != nil {
		return err
	}
	if c.Attempt < 0 || c.Grace < 0 {
		return agent.Errorf(agent.CodeInvalid, "an attempt of %s with a grace of %s: no time is negative", c.Attempt, c.Grace)
	}
	return checkJSON("arguments", c.Args)
}

// CheckFence refuses a fence that no ledger takes.
func (c Claim) CheckFence(reason string) error {
	if err := c.Check(); err != nil {
		return err
	}
	return CheckNamed("reason", reason)
}

// Check refuses an outcome that no ledger takes.
func (o Outcome) Check() error {
	if o.Status != EffectApplied && o.Status != EffectRefused {
		return agent.Errorf(agent.CodeInvalid, "an effect cannot be settled as %q: %s and %s are outcomes", o.Status, EffectApplied, EffectRefused)
	}
	if o.Whole != nil {
		if err := CheckText("blob", o.Whole.Ref); err != nil {
			return err
		}
	}
	if err := CheckText("reason", o.Reason, "name of who found it out", o.By); err != nil {
		return err
	}
	return checkJSON("result", o.Result)
}

// Equal reports whether two outcomes say the same.
func (o Outcome) Equal(other Outcome) bool {
	sameWhole := o.Whole == other.Whole || o.Whole != nil && other.Whole != nil && *o.Whole == *other.Whole
	return sameWhole && o.Status == other.Status && o.Reason == other.Reason && o.By == other.By && o.Result.Equal(other.Result)
}

// Check refuses a filter that no database can compare with.
func (f EffectFilter) Check() error {
	if f.State != "" && !slices.Contains(EffectStates, f.State) {
		return agent.Errorf(agent.CodeInvalid, "there is no state %q of an effect: %v", f.State, EffectStates)
	}
	if strings.Trim(f.Instructions, "0123456789abcdef") != "" {
		return agent.Errorf(agent.CodeInvalid, "%q is not the beginning of a digest of instructions, which is hexadecimal in lower case", f.Instructions)
	}
	if f.Version < 0 || f.Grace < 0 {
		return agent.Errorf(agent.CodeInvalid, "version %d, grace %s: neither is negative", f.Version, f.Grace)
	}
	return CheckText("address", f.Address, "agent", f.Agent, "tool", f.Tool)
}

// Check refuses a hold that no store takes.
func (h Hold) Check() error {
	if err := CheckNamed("name of who holds", h.By, "reason", h.Reason); err != nil {
		return err
	}
	return CheckText("tenant", h.Tenant, "agent", h.Agent, "tool", h.Tool)
}

// Check refuses a model call that no store takes.
func (m ModelCall) Check() error {
	if err := CheckNamed("tenant", m.Tenant, "key", m.Key, "address", m.Address); err != nil {
		return err
	}
	if err := CheckText("model", m.Model, "instructions", m.Instructions); err != nil {
		return err
	}
	return checkJSON("answer", m.Answer)
}

// Check refuses a chain that no reader can look up.
func (c Chain) Check() error {
	if err := CheckNamed("tenant", c.Tenant); err != nil {
		return err
	}
	return CheckText("address", c.Address, "first run id", c.FirstRunID)
}

// Check refuses a filter that no database can compare with.
func (f RunFilter) Check() error {
	return CheckText("agent", f.Agent, "status", string(f.Status), "reason", f.Reason, "user", f.User, "address", f.Address, "under", f.Under)
}

// Check refuses a filter that no database can compare with.
func (f GateFilter) Check() error {
	return CheckText("address", f.Address, "agent", f.Agent, "role", f.Role, "kind", string(f.Kind), "status", string(f.Status))
}

// CheckText refuses text that not every database holds: U+0000 and invalid
// UTF-8. Its arguments are pairs of a name and a text.
func CheckText(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if strings.ContainsRune(pairs[i+1], 0) {
			return agent.Errorf(agent.CodeInvalid, "%s holds the character U+0000, which is not allowed", pairs[i])
		}
		if !utf8.ValidString(pairs[i+1]) {
			return agent.Errorf(agent.CodeInvalid, "%s is not valid UTF-8", pairs[i])
		}
	}
	return nil
}

// CheckNamed is CheckText for texts that may not be empty.
func CheckNamed(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return agent.Errorf(agent.CodeInvalid, "the %s is missing", pairs[i])
		}
	}
	return CheckText(pairs...)
}

func checkJSON(what string, j agent.JSON) error {
	if len(j) == 0 {
		return nil
	}
	c, err := agent.Encode(j)
	if err != nil {
		return agent.Errorf(agent.CodeInvalid, "%s: %w", what, err)
	}
	if !bytes.Equal(c, j) {
		return agent.Errorf(agent.CodeInvalid, "%s: the JSON is not canonical; it would not be read back byte for byte", what)
	}
	return nil
}
