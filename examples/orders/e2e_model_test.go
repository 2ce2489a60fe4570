package orders_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"example.com/orders"
	"interlock/agent"
	"interlock/llm"
	"interlock/llm/openai/openaitest"
	"interlock/llm/scripted"
)

// clerk plays the model. It knows what a request says and nothing else, so that a
// retry and a worker that was started again get the same answer.
type clerk struct {
	hung    sync.Once
	reached chan struct{} // closed by the first request about order 79, which gets no answer
}

func newClerk() *clerk { return &clerk{reached: make(chan struct{})} }

func (c *clerk) answer(req openaitest.ChatRequest) openaitest.ChatReply {
	first := false
	if req.Says("order 79") {
		c.hung.Do(func() { first = true; close(c.reached) })
	}
	if first {
		return openaitest.ChatReply{Hang: true}
	}
	reply := openaitest.FromResponse(propose(read(req)))
	for i := range reply.Calls {
		reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i) // unique in the conversation
	}
	return reply
}

// guess is what a model takes for the next Saturday that knows no calendar.
const guess = "2025-01-04"

var shown = []string{"order_id", "day", "fee"}

func propose(w wire) llm.Response {
	order := w.text("order_id")
	switch {
	case w.state["shipped"] == "true" && w.phase != "agree":
		return scripted.MoveTo("agree")
	case w.state["shipped"] == "true":
		return scripted.Say("The parcel has left, so its day stays.")
	case w.phase != "agree":
		return scripted.Say("It is on its way.")
	case order == "":
		quote := regexp.MustCompile(`order \d+`).FindString(w.said)
		order = strings.TrimPrefix(quote, "order ")
		return scripted.Then(scripted.SetFields(quote, scripted.Args{"order_id": order}), check(order, guess))
	case w.fee() == 0:
		return check(order, w.weekday())
	case w.answered:
		return scripted.Then(scripted.Confirm(shown...), scripted.MoveTo("change"))
	}
	return scripted.Ask("Shall I move it?", shown...)
}

func check(order, day string) llm.Response {
	return scripted.Then(scripted.SetFields("", scripted.Args{"day": day}), scripted.Call("check_day", orders.Wish{OrderID: order, Day: day}))
}

// wire is what the last request says.
type wire struct {
	phase    string
	state    map[string]string // JSON
	said     string            // the customer's last words
	answered bool              // they came after a question
	today    time.Time         // as check_day has told it
}

var (
	phaseLine = regexp.MustCompile(`(?m)^Phase: (\w+)`)
	stateLine = regexp.MustCompile(`(?m)^- (\w+) = (.*?)( \| .*)?$`)
	words     = regexp.MustCompile(`(?s)\[user message from "[^"]*"\]\n<<<\n(.*?)\n>>>`)
	todayIs   = regexp.MustCompile(`today is \w+, (\d{4}-\d\d-\d\d)`)
)

func read(req openaitest.ChatRequest) wire {
	w := wire{state: map[string]string{}}
	asked := false
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			asked = asked || c.Name == agent.CallAsk
		}
		for _, said := range words.FindAllStringSubmatch(m.Content, -1) {
			w.said, w.answered = said[1], asked
		}
	}
	situation := req.Messages[len(req.Messages)-1].Content
	if p := phaseLine.FindStringSubmatch(situation); p != nil {
		w.phase = p[1]
	}
	for _, f := range stateLine.FindAllStringSubmatch(situation, -1) {
		w.state[f[1]] = f[2]
	}
	if answer, ok := req.Answer("check_day"); ok {
		if day := todayIs.FindStringSubmatch(answer); day != nil {
			w.today, _ = time.Parse(time.DateOnly, day[1])
		}
	}
	return w
}

func (w wire) text(field string) (s string) {
	_ = json.Unmarshal([]byte(w.state[field]), &s)
	return s
}

func (w wire) fee() int64 {
	var m agent.Money
	_ = json.Unmarshal([]byte(w.state["fee"]), &m)
	return m.Minor
}

// weekday is the next day of the name that the customer said.
func (w wire) weekday() string {
	for ahead := 1; ahead <= 7; ahead++ {
		if day := w.today.AddDate(0, 0, ahead); strings.Contains(w.said, day.Weekday().String()) {
			return day.Format(time.DateOnly)
		}
	}
	return w.today.Format(time.DateOnly)
}
