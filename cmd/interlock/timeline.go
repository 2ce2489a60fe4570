package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"interlock/agent"
)

// timeline writes events as lines for people.
type timeline struct {
	since time.Time // what the seconds count from; zero: the time of day is written
}

func (t timeline) write(p *printer, e agent.Event) {
	who, what := describe(e)
	if what == "" {
		return
	}
	at := e.At.UTC().Format("15:04:05")
	if !t.since.IsZero() {
		at = fmt.Sprintf("%.2f", e.At.Sub(t.since).Seconds())
	}
	for i, text := range strings.Split(what, "\n") {
		if i > 0 {
			at, who = "", ""
		}
		p.line("  %8s  %-8s  %s", at, who, inline(text))
	}
}

// tell writes what customer and agent say to each other, as it happens.
func tell(w io.Writer, e agent.Event) {
	switch e.Type {
	case agent.EventMessage:
		fmt.Fprintf(w, "  customer  %s\n", indented(data[agent.MessageData](e).Text, 12))
	case agent.EventReply:
		fmt.Fprintf(w, "  agent     %s\n", indented(data[agent.ReplyData](e).Text, 12))
	case agent.EventReminded:
		fmt.Fprintf(w, "  agent     %s\n", indented(data[agent.RemindedData](e).Text, 12))
	case agent.EventGateOpened:
		if g := data[agent.GateOpenedData](e).Gate; g.Kind == agent.KindAsk {
			fmt.Fprintf(w, "  agent     %s\n", indented(question(g), 12))
		}
	}
}
