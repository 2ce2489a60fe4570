package agent

import (
	"fmt"
	"time"
)

// Idle is what becomes of a run that waits for its user and hears nothing: no
// gate, no operator and nothing that runs holds it up. It is off where both are 0.
type Idle struct {
	// Remind is how long until the user is reminded, once a wait, by a text of code.
	Remind time.Duration `json:"remind,omitempty"`
	// Close is how long until the run ends as cancelled: it has not reached a final
	// phase, so that it is not completed. Counted from the same moment as Remind.
	Close time.Duration `json:"close,omitempty"`
}

// RemindedData is the data of EventReminded: what the user is told who said
// nothing.
type RemindedData struct {
	Text string `json:"text"`
}

// reminder is the text where a definition has none.
const reminder = "Are you still there? I am waiting for your answer."

func applyReminded(r *Run, e Event, d RemindedData) {
	r.Reply, r.News, r.Reminded = &Reply{Seq: e.Seq, Text: d.Text}, e.Seq, e.At
	r.Opening = append(r.Opening, Item{Kind: ItemOutcome, Seq: e.Seq, Text: "The user had said nothing since " + stamp(r.Since) + " and was reminded: " + d.Text})
}

// idleAt is when the run has been idle for long enough, and whether it then ends;
// zero where it is not idle or nothing comes of it.
func (r *Run) idleAt() (at time.Time, closes bool) {
	i := r.Limits.Idle
	if r.Status != RunWaiting || r.Reason != "user" || r.Since.IsZero() || r.Repairs != nil {
		return at, false
	}
	reminded := !r.Reminded.IsZero() && !r.Reminded.Before(r.Since)
	switch {
	case i.Remind > 0 && !reminded:
		return r.Since.Add(i.Remind), false
	case i.Close <= 0:
		return at, false
	}
	at = r.Since.Add(i.Close)
	// A reminder that came late, since no worker was up, is given its time.
	if late := r.Reminded.Add(i.Close - i.Remind); reminded && late.After(at) {
		at = late
	}
	return at, true
}

// idle reminds the user, or ends the run, when the time for it has come.
func (m *Machine) idle() {
	r := m.run
	at, closes := r.idleAt()
	switch {
	case at.IsZero() || m.at.Before(at):
	case closes:
		m.emit(EventCancelRequested, "", CancelRequestedData{Principal: Principal{Subject: "interlock"},
			Reason: "idle: the user has said nothing since " + stamp(r.Since)})
		m.stopAll("the run was idle for too long")
	default:
		text := reminder
		if m.def.remind != nil {
			text = m.def.remind(m.situation())
		}
		m.emit(EventReminded, "", RemindedData{Text: clip(text, r.Limits.Message)})
	}
}

// setIdle asks for the timer of the next moment at which idle has something to do.
// One that is set already and fires earlier does as well: so that a conversation
// does not set one a turn.
func (m *Machine) setIdle() {
	at, _ := m.run.idleAt()
	if at.IsZero() || !m.idleTimer.IsZero() && !at.Before(m.idleTimer) {
		return
	}
	m.idleTimer = at
	m.command(SetIdle{At: at})
}

// idle reports what is wrong with it.
func (c *checker) idle(i Idle) {
	switch {
	case i.Remind < 0 || i.Close < 0:
		c.report("idle", "Remind is %s and Close %s; leave out what is not wanted", i.Remind, i.Close)
	case i.Close > 0 && i.Remind >= i.Close:
		c.report("idle", "Remind is %s and Close %s: the run would end before its user is reminded", i.Remind, i.Close)
	}
}

// Waiting is one thing that a run waits for.
type Waiting struct {
	For   WaitsFor   `json:"for"`
	Gate  string     `json:"gate,omitempty"`
	Step  string     `json:"step,omitempty"`
	What  string     `json:"what"`            // in a line
	Who   []string   `json:"who,omitempty"`   // roles that may decide; the subject, of a user
	Since time.Time  `json:"since"`           // when this wait began
	Until *time.Time `json:"until,omitempty"` // when it ends by itself; nil: never
	Then  string     `json:"then,omitempty"`  // what happens at Until
}

// WaitsFor says what a run waits for. On the wire; never rename.
type WaitsFor string

const (
	WaitsUser     WaitsFor = "user"     // to say something
	WaitsGate     WaitsFor = "gate"     // a person to decide
	WaitsOperator WaitsFor = "operator" // a person to find out what became of a step
	WaitsResume   WaitsFor = "resume"   // it is paused
	WaitsModel    WaitsFor = "model"    // the model's answer
	WaitsStep     WaitsFor = "step"     // a tool that runs
)

// Waits is all that the run waits for now, with since when, until when and for
// whom; nothing once it has ended. It needs no definition.
func (r *Run) Waits() (out []Waiting) {
	if r.Status.Ended() || r.Seq == 0 {
		return nil
	}
	since := r.Since
	if since.IsZero() { // a run from before that was kept
		since = r.At
	}
	if r.Status == RunPaused {
		out = append(out, Waiting{For: WaitsResume, What: "a resume; it is paused: " + r.Reason, Since: since})
	}
	if r.Calling {
		out = append(out, Waiting{For: WaitsModel, What: fmt.Sprintf("the model's answer of turn %d", r.Turn), Since: r.lastTurn().At})
	}
	for _, s := range r.Steps {
		if s.Status == StepRunning {
			what := "step " + s.ID + ", " + s.Tool
			if s.Undoes != "" {
				what += ", which undoes step " + s.Undoes
			}
			out = append(out, Waiting{For: WaitsStep, Step: s.ID, What: what, Since: s.RunAt})
		}
	}
	asked := false
	for _, g := range r.Gates {
		if g.Status != GateOpen {
			continue
		}
		w := Waiting{For: WaitsGate, Gate: g.ID, Step: g.StepID(), What: g.Title, Who: g.Roles, Since: g.OpenedAt, Until: g.ExpiresAt}
		switch g.Kind {
		case KindAsk:
			w.For, w.Who, asked = WaitsUser, []string{r.User}, true
		case KindDoubt:
			w.For = WaitsOperator
		}
		switch p := g.Pending; {
		case p != nil:
			w.Until, w.Then = &p.Until, fmt.Sprintf("the verdict of %s (%s) takes effect, unless it is taken back", p.By.Subject, p.Verdict)
		case w.Until != nil:
			w.Then = "it expires, and is not done"
		}
		out = append(out, w)
	}
	if r.Status == RunWaiting && r.Reason == "user" && !asked {
		out = append(out, Waiting{For: WaitsUser, What: "a message", Who: []string{r.User}, Since: since})
	}
	if at, closes := r.idleAt(); !at.IsZero() {
		for i := range out {
			if out[i].For == WaitsUser {
				if out[i].Until, out[i].Then = &at, "the user is reminded"; closes {
					out[i].Then = "the run is closed"
				}
			}
		}
	}
	return Redacted(r.Redaction(), out) // nobody decides by a list
}
