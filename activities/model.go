package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"interlock/agent"
	"interlock/llm"
	"interlock/prompt"
	"interlock/signals"
	"interlock/store"
)

// maxAnswer bounds what a model's answer may bring into a run, in bytes.
const maxAnswer = 64 << 10

// mendEvery is how often a call is tried that an operator must make possible.
const mendEvery = time.Minute

// CallModel renders the view and asks the model. An answer that the provider
// has given is recorded at once: a retry after that point uses it.
func (a *Activities) CallModel(ctx context.Context, in signals.CallModelInput) (signals.CallModelResult, error) {
	defer beat(ctx, nil)()
	ref := ref(ctx, in.FirstRunID, in.Batch.Store)
	key, began := callKey(ref, in.View.Turn), time.Now()
	// The record of the answer waits for the disk and takes the events with it,
	// so their own commit need not.
	carried, err := a.ride(ctx, in.Ride, a.Store.AppendSoon)
	if err != nil {
		return signals.CallModelResult{}, err
	}
	stored, err := a.Store.ModelCall(ctx, ref.Tenant, key)
	switch {
	case err == nil: // there is nothing left to record: the events wait by themselves
		err = a.Store.Append(ctx, ref, in.Batch)
		if err != nil {
			err = appendError(err)
		}
	case agent.ErrorCode(err) == agent.CodeNotFound:
		if stored, err = a.generate(ctx, in.View, ref, key); err != nil {
			err = a.redacted(ctx, ref, err)
		}
	default:
		err = storeError(err)
	}
	if err != nil {
		return signals.CallModelResult{}, err
	}
	out := signals.CallModelResult{Carried: carried}
	err = json.Unmarshal(stored.Answer, &out.Answer)
	out.Answer.ActiveMS = activeMS(ctx, began)
	return out, err
}

// callKey names a model call: a Temporal run makes one for each turn. A reset
// makes a new run, and calls again.
func callKey(ref store.RunRef, turn int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", ref.Address, ref.Branch, turn))
	return hex.EncodeToString(sum[:16])
}

func (a *Activities) generate(ctx context.Context, v agent.View, ref store.RunRef, key string) (store.ModelCall, error) {
	def, err := a.definition(v.Agent, v.Version)
	if err != nil {
		return store.ModelCall{}, err
	}
	req, size, err := a.request(ctx, def, v, ref)
	if err != nil {
		return store.ModelCall{}, err
	}
	model, err := a.Model(def)
	if err != nil {
		return store.ModelCall{}, failed(signals.ErrNotDeployed, err.Error())
	}
	said := a.piecesOf(ctx, ref, v.Turn)
	req.Delta = said.add
	resp, err := model.Generate(ctx, req)
	if llm.KindOf(err) == llm.KindContextTooLong {
		v.Limit /= 2 // once: what must be shown may be too much by itself
		if smaller, n, e := a.request(ctx, def, v, ref); e == nil {
			size, smaller.Delta = n, said.add
			resp, err = model.Generate(ctx, smaller)
		}
	}
	said.flush()
	if err != nil {
		return store.ModelCall{}, modelError(err)
	}
	answer := signals.Answer{Text: resp.Text, Calls: resp.Calls, Finish: resp.Finish, Model: resp.Model,
		Instructions: def.InstructionsDigest(), Usage: resp.Usage, Opaque: resp.Opaque, Bytes: size}
	j, err := agent.Encode(answer)
	if err != nil {
		return store.ModelCall{}, failedForGood(signals.ErrModel, "the model's answer is not accepted: "+err.Error())
	}
	if len(j) > maxAnswer {
		return store.ModelCall{}, failedForGood(signals.ErrModel,
			fmt.Sprintf("the model's answer has %d bytes, the limit is %d; set the model's output limit lower", len(j), maxAnswer))
	}
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	first, err := a.Store.RecordModelCall(done, store.ModelCall{Tenant: ref.Tenant, Key: key, Address: ref.Address, Turn: v.Turn, Model: resp.Model,
		Instructions: answer.Instructions, Usage: resp.Usage, RequestBytes: answer.Bytes, Answer: j, At: time.Now().UTC().Truncate(time.Microsecond)})
	if err != nil {
		return store.ModelCall{}, storeError(err)
	}
	return first, nil
}

// modelError: an outage is waited for, however it comes: what passes by itself
// with the delay that the provider asked for, or else with backoff; a key or a
// quota, which an operator must mend, by looking every [mendEvery], so that all
// runs go on by themselves when it is mended. What the same request would meet
// again ends the call, and pauses the run: among it a context that is too long
// even with half of the room.
func modelError(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return failed(signals.ErrUnavailable, err.Error())
	}
	delay := e.RetryAfter
	switch {
	case e.Kind.Temporary():
	case e.Kind.Operator():
		delay = max(delay, mendEvery)
	default:
		return failedForGood(signals.ErrModel, err.Error())
	}
	return temporal.NewApplicationErrorWithOptions(clip(err.Error()), signals.ErrUnavailable,
		temporal.ApplicationErrorOptions{NextRetryDelay: delay})
}

// request renders the view with the definition's present instructions. size is
// that of the request.
func (a *Activities) request(ctx context.Context, def *agent.Definition, v agent.View, ref store.RunRef) (req llm.Request, size int, err error) {
	in, err := prompt.For(def, v)
	if err != nil {
		return req, 0, failed(signals.ErrNotDeployed, err.Error()+" on this worker")
	}
	in.Reads, err = a.reads(ctx, v, ref)
	if err != nil {
		return req, 0, err
	}
	out, err := prompt.Render(in)
	if err != nil {
		// Rendering is code: a deploy can mend it, so the call waits.
		return req, 0, failed(signals.ErrNotDeployed, "the context cannot be rendered: "+err.Error())
	}
	return llm.Request{Messages: out.Messages, Tools: out.Tools, Only: out.Only, View: v}, out.Report.Bytes, nil
}

// reads fetches the parts of results that the model asked to read on: from the
// blob store where the whole is there, else from the journal.
func (a *Activities) reads(ctx context.Context, v agent.View, ref store.RunRef) (map[string]prompt.Part, error) {
	out := map[string]prompt.Part{}
	for _, t := range v.Turns {
		for _, c := range t.Calls {
			if c.Read == nil {
				continue
			}
			text, err := a.wholeResult(ctx, c.Read.Step, ref)
			if err != nil {
				return nil, err
			}
			from := min(c.Read.Offset, len(text))
			out[c.ID] = prompt.Part{Text: text[from:], Whole: len(text)}
		}
	}
	return out, nil
}

func (a *Activities) wholeResult(ctx context.Context, step string, ref store.RunRef) (string, error) {
	events, err := a.Store.Events(ctx, store.Chain{Tenant: ref.Tenant, Address: ref.Address, FirstRunID: ref.FirstRunID}, 1, 0)
	if err != nil {
		return "", storeError(err)
	}
	for _, e := range events {
		if e.Step != step || e.Type != agent.EventStepDone {
			continue
		}
		var d agent.StepDoneData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return "", err
		}
		run, err := agent.Reduce(events)
		if err != nil {
			return "", failed(signals.ErrStore, err.Error())
		}
		x := run.FromModel()
		if d.Whole == nil {
			return x.Text(d.Result.String()), nil
		}
		whole, err := a.Store.GetBlob(ctx, ref.Tenant, d.Whole.Ref, 0, -1)
		if err != nil {
			return "", storeError(err)
		}
		return x.Text(string(whole)), nil
	}
	return "", nil
}
