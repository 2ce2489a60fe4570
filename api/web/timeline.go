package web

import (
	"fmt"
	"slices"
	"strings"

	"interlock/agent"
	"interlock/api/visible"
	"interlock/api/words"
)

// timeline is a picture of a run, from the top down: a row for everything that
// happened, a bar for each step and gate from its beginning to its end, a band for
// each turn. The table beside it says the same in words.
type timeline struct {
	Rows          []timelineRow
	Bars          []timelineBar
	Bands         []timelineBand
	Width, Height int
	TextX         int
	Left          int // rows that did not fit: the oldest
}

type timelineRow struct {
	Y, TextY    int
	Seq         int64
	Path        string
	At          moment
	Clock       string
	Turn        int
	Who, Symbol string
	Label, Full string
	Colour      string
	X           int // of its dot; 0: none
}

type timelineBar struct {
	X, Y, H int
	Kind    string // step, gate
	Colour  string
	Title   string
	Open    bool
}

type timelineBand struct {
	Y, H, TextY int
	Label       string
	Odd         bool
}

// The measures of the picture.
const (
	rowHeight   = 22
	laneWidth   = 14
	laneLeft    = 46
	maxLanes    = 8
	maxTimeline = 160
	labelRunes  = 72
	runeWidth   = 7
	clockWidth  = 66
)

// drawing is a timeline that is being made.
type drawing struct {
	timeline
	v     *visit
	path  string
	lanes []string // who has a lane now
	open  map[string]*openBar
	wide  int
	turn  int
}

type openBar struct {
	lane, y int
	kind    string
	what    string
}

func (v *visit) timeline(events []agent.Event, run *agent.Run, x *agent.Redaction) timeline {
	var told []agent.Event
	for _, e := range events {
		if e.Seq <= run.Seq && symbolOf(e) != "" {
			told = append(told, e)
		}
	}
	d := &drawing{v: v, path: runPath(run.Agent, run.Key), open: map[string]*openBar{}}
	if d.Left = max(len(told)-maxTimeline, 0); d.Left > 0 {
		told = told[d.Left:]
	}
	for _, e := range agent.Redacted(x, told) {
		d.add(e)
	}
	end := len(d.Rows) * rowHeight
	for _, id := range sortedKeys(d.open) {
		d.close(id, end, "blue", "still open", true)
	}
	d.endBand(end)
	d.TextX = laneLeft + max(len(d.lanes), 1)*laneWidth + 6
	d.Width, d.Height = d.TextX+clockWidth+d.wide*runeWidth+12, end+6
	return d.timeline
}

// symbolOf says how an event stands in the picture; "" where it does not.
func symbolOf(e agent.Event) string {
	switch e.Type {
	case agent.EventStepStarted:
		if dataOf[agent.StepStartedData](e).Kind == agent.KindAsk {
			return "" // its gate says so
		}
		return "▷"
	case agent.EventStepSettled:
		d := dataOf[agent.StepSettledData](e)
		return stepStatus(d.Status).Symbol
	case agent.EventGateClosed:
		return gateStatus(dataOf[agent.GateClosedData](e).Status).Symbol
	case agent.EventVerdict:
		if dataOf[agent.VerdictData](e).Judgement == "valid" {
			return "" // its gate's end says so
		}
		return "∅"
	}
	return map[agent.EventType]string{
		agent.EventStarted: "●", agent.EventMessage: "✉", agent.EventReply: "❝", agent.EventTurnStarted: "↻", agent.EventTurnCut: "✂",
		agent.EventPhaseEntered: "→", agent.EventStepResumed: "▶", agent.EventStepDone: "✓", agent.EventCommitRefused: "✗",
		agent.EventGateOpened: "◇", agent.EventGateCounted: "+", agent.EventGateEscalated: "↑", agent.EventRulingMade: "§", agent.EventRulingDrafted: "§",
		agent.EventRulingConfirmed: "§", agent.EventRulingLifted: "§", agent.EventCancelRequested: "⊘", agent.EventPaused: "‖", agent.EventResumed: "▶",
		agent.EventAmended: "✎", agent.EventUndoRequested: "↶", agent.EventReminded: "❝", agent.EventCompleted: "✓", agent.EventCancelled: "⊘", agent.EventFailed: "✗",
		agent.EventInterrupted: "✂", agent.EventStepStopping: "✂", agent.EventStepBegun: "▶", agent.EventInterruptSettled: "✂",
	}[e.Type]
}

func (d *drawing) add(e agent.Event) {
	y := len(d.Rows) * rowHeight
	if e.Turn != d.turn {
		d.endBand(y)
		d.turn = e.Turn
		if e.Turn > 0 {
			d.Bands = append(d.Bands, timelineBand{Y: y, TextY: y + 15, Label: fmt.Sprintf("T%d", e.Turn), Odd: e.Turn%2 == 1})
		}
	}
	who, what := words.Event(e)
	if closed := dataOf[agent.GateClosedData](e); e.Type == agent.EventGateClosed && closed.By != nil {
		what += ", by " + words.Principal(closed.By, closed.Verified) // the verdict has no row of its own
	}
	row := timelineRow{Y: y, TextY: y + 15, Seq: e.Seq, Path: fmt.Sprintf("%s?seq=%d", d.path, e.Seq), At: d.v.moment(e.At), Clock: e.At.UTC().Format("15:04:05"), Turn: e.Turn,
		Who: who, Symbol: symbolOf(e), Full: strings.ReplaceAll(what, "\n", " "), Label: shortened(what), Colour: colourOf(e)}
	row.X = d.mark(e, y, row.Colour, what)
	d.wide = max(d.wide, len([]rune(row.Label))+2)
	d.Rows = append(d.Rows, row)
}

// mark opens or closes the bar of an event, and is where its dot stands.
func (d *drawing) mark(e agent.Event, y int, colour, what string) int {
	middle := y + rowHeight/2
	switch e.Type {
	case agent.EventStepStarted:
		return d.begin("step "+e.Step, "step", middle, what)
	case agent.EventGateOpened:
		return d.begin("gate "+dataOf[agent.GateOpenedData](e).Gate.ID, "gate", middle, what)
	case agent.EventStepDone:
		return d.close("step "+e.Step, middle, colour, what, false)
	case agent.EventStepSettled:
		if dataOf[agent.StepSettledData](e).Status == agent.StepInDoubt {
			return d.at("step " + e.Step)
		}
		return d.close("step "+e.Step, middle, colour, what, false)
	case agent.EventGateClosed:
		return d.close("gate "+dataOf[agent.GateClosedData](e).Gate, middle, colour, what, false)
	case agent.EventStepResumed, agent.EventStepStopping, agent.EventStepBegun:
		return d.at("step " + e.Step)
	}
	return 0
}

func (d *drawing) begin(id, kind string, y int, what string) int {
	lane := slices.Index(d.lanes, "")
	switch {
	case lane >= 0:
	case len(d.lanes) < maxLanes:
		d.lanes = append(d.lanes, "")
		lane = len(d.lanes) - 1
	default:
		lane = maxLanes - 1
	}
	d.lanes[lane] = id
	d.open[id] = &openBar{lane: lane, y: y, kind: kind, what: what}
	return laneX(lane)
}

func laneX(lane int) int { return laneLeft + lane*laneWidth }

func (d *drawing) at(id string) int {
	if o := d.open[id]; o != nil {
		return laneX(o.lane)
	}
	return 0
}

// close draws a bar that has come to its end.
func (d *drawing) close(id string, y int, colour, what string, open bool) int {
	o := d.open[id]
	if o == nil {
		return 0
	}
	delete(d.open, id)
	if d.lanes[o.lane] == id {
		d.lanes[o.lane] = ""
	}
	d.Bars = append(d.Bars, timelineBar{X: laneX(o.lane), Y: o.y, H: max(y-o.y, 2), Kind: o.kind, Colour: colour, Title: o.what + " … " + what, Open: open})
	return laneX(o.lane)
}

func (d *drawing) endBand(y int) {
	if n := len(d.Bands); n > 0 && d.Bands[n-1].H == 0 {
		d.Bands[n-1].H = y - d.Bands[n-1].Y
	}
}

func colourOf(e agent.Event) string {
	switch e.Type {
	case agent.EventStepDone, agent.EventCompleted:
		return "green"
	case agent.EventStepSettled:
		return stepStatus(dataOf[agent.StepSettledData](e).Status).Colour
	case agent.EventGateClosed:
		return gateStatus(dataOf[agent.GateClosedData](e).Status).Colour
	case agent.EventGateOpened, agent.EventGateEscalated, agent.EventPaused, agent.EventUndoRequested, agent.EventInterrupted, agent.EventTurnCut:
		return "amber"
	case agent.EventFailed, agent.EventCommitRefused, agent.EventRulingMade:
		return "red"
	}
	return "blue"
}

// shortened is a text for the picture, which has the whole one beside it.
func shortened(s string) string {
	r := []rune(visible.Inline(strings.ReplaceAll(s, "\n", " ")))
	if len(r) > labelRunes {
		return string(r[:labelRunes-1]) + "…"
	}
	return string(r)
}
