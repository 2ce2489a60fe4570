package agent

import (
	"slices"
	"strings"
)

func applyPaused(r *Run, e Event, d PausedData) {
	r.Status, r.Reason, r.News = RunPaused, d.Reason, e.Seq
	if d.ID != "" && d.Principal != nil {
		r.handled(e.Seq, d.ID, d.Body, *d.Principal, Handled{})
	}
}

// applyResumed lets the run go on with what stopped it taken away: the budget is
// granted once more, what counts in a row begins again, and a model call that
// was cut is due again.
func applyResumed(r *Run, e Event, d ResumedData) {
	r.Status, r.Reason, r.Autos = RunRunning, "", 0
	switch d.Budget {
	case "turns":
		r.Granted.Turns = r.Used.Turns
	case "model_calls":
		r.Granted.ModelCalls = r.Used.ModelCalls
	case "tokens":
		r.Granted.Tokens = r.Used.Usage.Total()
	case "active":
		r.Granted.ActiveMS = r.Used.ActiveMS
	case "refusals":
		r.Used.Refusals = 0
	case "tool_errors":
		r.Used.ToolErrors = 0
	case "same_call":
		r.Used.SameCall, r.Used.LastCall = 0, ""
	}
	if t := r.lastTurn(); t.Cut != "" && t.Proposal == nil && !r.Spoken {
		r.Due = true
	}
	r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{})
}

// applyAmended adds to the one item that tells the model of amends, so that
// many of them take no more room than one. It does not call the model.
func applyAmended(r *Run, e Event, d AmendedData) {
	r.forgetFields(d.Fields) // also where they held the values already
	item := Item{Kind: ItemOutcome, Seq: e.Seq, Fields: d.Fields}
	r.Opening = slices.DeleteFunc(r.Opening, func(it Item) bool {
		if len(it.Fields) == 0 {
			return false
		}
		item.Fields = append(item.Fields, it.Fields...)
		return true
	})
	slices.Sort(item.Fields)
	item.Fields = slices.Compact(item.Fields)
	item.Text = "Set from outside, latest by " + d.Principal.Subject + ": " + strings.Join(item.Fields, ", ")
	if d.Reason != "" {
		item.Text += " (" + d.Reason + ")"
	}
	item.Text += "."
	r.Opening = append(r.Opening, item)
	r.handled(e.Seq, d.ID, d.Body, d.Principal, Handled{})
}

func applyReply(r *Run, e Event, d ReplyData) {
	r.Reply, r.News = &Reply{Seq: e.Seq, Text: d.Text, Last: d.Last}, e.Seq
	if d.Last {
		r.Spoken = true
	}
}

// cutLimit bounds what the time of a model call that had no answer counts for:
// most of a long one was waiting for a provider that was down.
const cutLimit = 5 * 60 * 1000 // ms

// handledBytes bounds what the handled ids take of a snapshot.
const handledBytes = 112 << 10

// Sender tells whose an id is: an id is unique for its sender, and no more. One whom
// nothing proves is another than one who is proven, under the same subject.
func (r *Run) Sender(p Principal) string {
	tenant := p.Tenant
	if tenant == "" {
		tenant = r.Tenant
	}
	return digest([]any{tenant, personKey(p.Subject), p.Auth != ""})[:12]
}

// FirstReceipt is what the run remembers of a sender's input with this id; nil where
// it has none, or forgot it.
func (r *Run) FirstReceipt(id string, who Principal) *Handled {
	by := r.Sender(who)
	for i := range r.Handled {
		if h := &r.Handled[i]; h.ID == id && h.By == by {
			return h
		}
	}
	return nil
}

// handled remembers an input of a sender with what its receipt says.
func (r *Run) handled(seq int64, id, body string, who Principal, h Handled) {
	h.ID, h.By, h.Body, h.Seq = id, r.Sender(who), body, seq
	r.Handled = append(r.Handled, h)
	over := max(len(r.Handled)-r.Limits.Handled, 0)
	size := 0
	for i := len(r.Handled) - 1; i >= over; i-- {
		if size += r.Handled[i].size(); size > handledBytes {
			over = i + 1
		}
	}
	if over > 0 {
		r.Handled = slices.Delete(r.Handled, 0, over)
	}
}
