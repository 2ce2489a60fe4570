package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"interlock/agent"
	"interlock/api/access"
	"interlock/api/words"
	"interlock/signals"
)

// choice is one gate that was chosen in the inbox, as it was shown there.
type choice struct {
	n                int
	agent, key, gate string
	id, digest       string
}

func (c choice) ref() string { return c.agent + "/" + c.key + "/" + c.gate }

// choices are the chosen gates of a form. Each brings its own digest and id.
func (v *visit) choices() (out []choice, err error) {
	for _, n := range v.r.PostForm["pick"] {
		parts := strings.Split(v.form("gate-"+n), "/")
		c := choice{n: number(n), id: v.form("id-" + n), digest: v.form("digest-" + n)}
		if len(parts) != 3 || c.id == "" || c.digest == "" || len(out) >= inboxPage {
			return nil, agent.Errorf(agent.CodeInvalid, "the form is not whole: nothing was decided; open the inbox again")
		}
		c.agent, c.key, c.gate = parts[0], parts[1], parts[2]
		out = append(out, c)
	}
	return out, nil
}

// decideSeveral gives the same verdict at each of the chosen gates: as many
// verdicts as gates, of which each stands or falls by itself.
func decideSeveral(v *visit) error {
	if err := access.Check(v.caller, access.Verdict, access.On{}); err != nil {
		return v.audited(access.Verdict, "", err)
	}
	word, reason, err := v.severalOf()
	chosen, wrong := v.choices()
	if wrong != nil {
		return wrong
	}
	if err == nil && len(chosen) == 0 {
		err = agent.Errorf(agent.CodeInvalid, "no gate is chosen: tick those that the verdict is about")
	}
	if err == nil {
		err = v.checkSeveral(chosen, word, reason)
	}
	if err != nil {
		return v.inboxAgain(chosen, err)
	}
	q := url.Values{}
	for i, became := range v.decideEach(chosen, word, reason) {
		q.Add("d", chosen[i].ref()+"~"+became)
	}
	v.to("/decided?" + q.Encode())
	return nil
}

// A list is answered within severalFor, whatever its runs are at; so many are sent
// at a time.
const (
	severalFor    = 20 * time.Second
	severalAtOnce = 8
	standFor      = 8 * time.Second // for how the gates stand
)

// decideEach gives the verdict at each gate, and says in a word what became of
// each.
func (v *visit) decideEach(chosen []choice, word agent.VerdictValue, reason string) []string {
	ctx, cancel := context.WithTimeout(v.ctx, severalFor)
	defer cancel()
	within := *v
	within.ctx = ctx
	out := make([]string, len(chosen))
	atOnce(len(chosen), func(i int) { out[i] = within.decideChoice(chosen[i], word, reason) })
	return out
}

// atOnce does n things, so many at a time, and waits for all.
func atOnce(n int, do func(i int)) {
	slots := make(chan struct{}, severalAtOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}

func (v *visit) severalOf() (word agent.VerdictValue, reason string, err error) {
	switch word = agent.VerdictValue(v.form("verdict")); word {
	case agent.Approve:
		return word, "", nil
	case agent.Reject:
		reason, err = rejection(v.form("why"), v.form("reason"))
		return word, reason, err
	}
	return word, "", agent.Errorf(agent.CodeInvalid, "%q is no verdict for several gates: approve or reject", word)
}

// checkSeveral says what no run would take, before anything is sent: afterwards the
// reason would be lost, and its mistake be told of none of the gates.
func (v *visit) checkSeveral(chosen []choice, word agent.VerdictValue, reason string) error {
	for _, c := range chosen {
		if err := agent.CheckVerdict(agent.Verdict{Gate: c.gate, Digest: c.digest, Verdict: word, Reason: reason, Principal: v.caller.Principal()}); err != nil {
			return err
		}
	}
	return nil
}

// inboxAgain shows the inbox with what was chosen and what is missing.
func (v *visit) inboxAgain(chosen []choice, problem error) error {
	picked := map[string]bool{}
	for _, c := range chosen {
		picked[c.ref()] = true
	}
	view, err := v.inbox(picked)
	if err != nil {
		return err
	}
	view.Problem, view.Text, view.Chosen = problem.Error(), v.form("reason"), v.form("why")
	return v.page(http.StatusUnprocessableEntity, "inbox", "Inbox", view)
}

// What became of one verdict of several, for the address of the answer.
const (
	wasTaken   = "taken"
	wasKept    = "kept"
	wasPutOff  = "put_off"
	wasSingle  = "single"
	wasUnknown = "unknown"
)

// decideChoice gives one verdict, and says in a word what became of it.
func (v *visit) decideChoice(c choice, word agent.VerdictValue, reason string) string {
	address := signals.Address(v.caller.Tenant, c.agent, c.key)
	r, g, err := v.sendChoice(c, address, word, reason)
	if err == nil && g == nil {
		_ = v.audited(access.Verdict, address+"#"+c.gate+" "+string(word), agent.Errorf(agent.CodeInvalid, "on its own page only"))
		return wasSingle
	}
	_ = v.audited(access.Verdict, address+"#"+c.gate+" "+string(word), asError(r, err))
	switch {
	case err != nil:
		return string(agent.ErrorCode(err))
	case r.Status == agent.KeptBack && putsOff(*g, word):
		return wasPutOff
	case r.Status == agent.KeptBack:
		return wasKept
	case r.Status == agent.Voided:
		return string(agent.ErrorCode(asError(r, nil)))
	}
	return wasTaken
}

// sendChoice sends the verdict, unless it approves what the list did not show: then
// there is no gate with it.
func (v *visit) sendChoice(c choice, address string, word agent.VerdictValue, reason string) (r agent.Receipt, g *agent.Gate, err error) {
	if signals.CheckAddress(v.caller.Tenant, c.agent, c.key) != nil {
		return r, nil, access.NotFound()
	}
	row, err := v.Starter.Gate(v.ctx, address, c.gate)
	if err != nil {
		return r, nil, err
	}
	on := access.On{Tenant: v.caller.Tenant, Run: address, Gate: &access.OnGate{Kind: row.Gate.Kind, Roles: row.Gate.Roles, Verdict: word}}
	if err := access.Check(v.caller, access.Verdict, on); err != nil {
		return r, nil, err
	}
	if word == agent.Approve && single(row.Gate) != "" {
		return r, nil, nil
	}
	sentAs := signals.Verdict{ID: c.id, Gate: c.gate, Digest: c.digest, Verdict: word, Reason: reason, Principal: v.caller.Principal()}
	r, err = v.Starter.Decide(v.ctx, address, sentAs)
	if err == nil && r.Status == agent.Repeated {
		chain, _ := chainOf(address)
		if first, err := v.judged(chain, c.id, r.Seq); err == nil && first.Judgement == "void" {
			r = agent.Receipt{Status: agent.Voided, Code: first.Code, Reason: first.Reason}
		}
	}
	return r, &row.Gate, err
}

// decidedView is what became of several verdicts.
type decidedView struct {
	Rows  []decidedRow
	Taken int
}

type decidedRow struct {
	Path, Gate, Title string
	Taken             bool
	Text              string // what became of the verdict
	Now               string // how the gate stands
}

// showDecided tells of each gate what became of its verdict, and how it stands.
// The address only says what was answered; how a gate stands is read anew.
func showDecided(v *visit) error {
	asked := v.r.URL.Query()["d"]
	asked = slices.DeleteFunc(asked[:min(len(asked), inboxPage)], func(d string) bool { return strings.Count(d, "/") != 2 })
	if len(asked) == 0 {
		v.to("/")
		return nil
	}
	ctx, cancel := context.WithTimeout(v.ctx, standFor)
	defer cancel()
	within := *v
	within.ctx = ctx
	view := decidedView{Rows: make([]decidedRow, len(asked))}
	atOnce(len(asked), func(i int) {
		ref, code, _ := strings.Cut(asked[i], "~")
		parts := strings.Split(ref, "/")
		view.Rows[i] = within.decidedRow(parts[0], parts[1], parts[2], code)
	})
	slices.SortStableFunc(view.Rows, func(a, b decidedRow) int { // what needs another look comes first
		switch {
		case a.Taken == b.Taken:
			return 0
		case a.Taken:
			return 1
		}
		return -1
	})
	for _, r := range view.Rows {
		if r.Taken {
			view.Taken++
		}
	}
	return v.page(http.StatusOK, "decided", "What became of your verdicts", view)
}

func (v *visit) decidedRow(agentName, key, gate, code string) decidedRow {
	row := decidedRow{Path: gatePath(agentName, key, gate), Gate: agentName + "/" + key + " gate " + gate, Taken: code == wasTaken || code == wasPutOff, Text: becameText(code)}
	g, err := v.gateNow(agentName, key, gate)
	if err != nil {
		row.Now = "How it stands cannot be shown: there is no such gate, or you may not see it"
		if agent.ErrorCode(err) == agent.CodeUnavailable {
			row.Now = "How it stands cannot be shown just now"
		}
		return row
	}
	row.Title = g.Title
	switch {
	case g.Status != agent.GateOpen:
		row.Now = "Now " + how(g)
	case g.Pending != nil:
		row.Now = "Now " + waits(*g.Pending)
	case g.Quorum > 1:
		row.Now = "Now open, approved by " + words.Approvals(g)
	default:
		row.Now = "Now open"
	}
	return row
}

// gateNow is a gate as it stands, where the caller may see it. The run itself is
// asked first: the journal may not have yet what was decided a moment ago.
func (v *visit) gateNow(agentName, key, gate string) (agent.Gate, error) {
	if signals.CheckAddress(v.caller.Tenant, agentName, key) != nil {
		return agent.Gate{}, access.NotFound()
	}
	address := signals.Address(v.caller.Tenant, agentName, key)
	on := access.On{Tenant: v.caller.Tenant, Run: address}
	run, err := v.Starter.Get(v.ctx, address)
	if err == nil {
		on.User = run.User
		if i := slices.IndexFunc(run.Gates, func(g agent.Gate) bool { return g.ID == gate }); i >= 0 {
			return v.mayShow(run.Gates[i], on)
		}
	}
	row, err := v.Starter.Gate(context.WithoutCancel(v.ctx), address, gate)
	if err != nil {
		return agent.Gate{}, err
	}
	return v.mayShow(row.Gate, on)
}

func (v *visit) mayShow(g agent.Gate, on access.On) (agent.Gate, error) {
	on.Gate = &access.OnGate{Kind: g.Kind, Roles: g.Roles}
	if err := access.Check(v.caller, access.GateGet, on); err != nil {
		return agent.Gate{}, err
	}
	return g, nil
}

// becameText says what a word of the address means.
func becameText(code string) string {
	switch agent.Code(code) {
	case wasTaken:
		return "Your verdict was taken."
	case wasPutOff:
		return "Your verdict was taken. It takes effect in a while: until then you can take it back on the gate's own page."
	case wasKept:
		return "Your verdict is kept: the run has something unanswered or is paused, and judges it right after."
	case wasSingle:
		return "Not sent: this gate can be approved on its own page only, where all of it is shown."
	case agent.CodeGateClosed:
		return "Your verdict decided nothing: the gate was closed before."
	case agent.CodeStale:
		return "Your verdict decided nothing: the gate has changed since the list was shown. Look again."
	case agent.CodeDenied:
		return "Your verdict decided nothing: you may not decide this gate."
	case agent.CodeConflict:
		return "Your verdict decided nothing: you have approved it before, or this form was sent before with another verdict."
	case agent.CodeNotFound:
		return "There is no such gate, or you may not see it."
	case agent.CodeEnded:
		return "Your verdict decided nothing: the run has ended."
	case agent.CodeUnavailable:
		return "Not known: the run could not be reached. Open the gate and decide there; a second verdict is harmless."
	}
	return "Your verdict decided nothing."
}
