package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"interlock/agent"
	"interlock/store"
)

// spentView is what models took in a time: a picture of bars, and the same numbers as
// tables.
type spentView struct {
	ID, Title, Each string
	Plots           []plot
	Models          []spentRow // by agent and model
	Steps           []stepSpent
	Empty           bool
}

type spentRow struct {
	Agent, Model                      string
	Calls, Input, Cached, Output, All string
}

type stepSpent struct {
	At            moment
	Label         string
	Calls, Tokens string
}

// plot is a picture of bars, one for each step. Its words stand beside it.
type plot struct {
	ID, Title, Desc, Most string
	First, Last           string
	Bars                  []bar
	Width, Height         int
}

type bar struct {
	X, Y, W, H int
	Title      string
}

// The measures of a plot, of which a browser makes what fits.
const (
	plotWidth  = 672 // many numbers of bars go into it
	plotHeight = 96
)

// spent is of the last 24 hours by hour, and of the last 7 days by day.
func (v *visit) spent(view *opsView) error {
	for _, of := range []struct {
		id, title, each, label string
		step                   time.Duration
		steps                  int
	}{{"day", "The last 24 hours", "hour", "15:04", time.Hour, 24}, {"week", "The last 7 days", "day", "Mon 2 Jan", 24 * time.Hour, 7}} {
		to := v.now.UTC().Truncate(of.step).Add(of.step)
		from := to.Add(-time.Duration(of.steps) * of.step)
		rows, err := v.Reader.Spent(v.ctx, v.caller.Tenant, store.SpentFilter{From: from, To: to, Step: of.step})
		if err != nil {
			return err
		}
		out := spentView{ID: of.id, Title: of.title, Each: of.each, Empty: len(rows) == 0, Models: modelsOf(rows)}
		calls, tokens := make([]int64, of.steps), make([]int64, of.steps)
		for _, r := range rows {
			if i := int(r.At.Sub(from) / of.step); i >= 0 && i < of.steps {
				calls[i] += int64(r.Calls)
				tokens[i] += r.Usage.Total()
			}
		}
		labels := make([]string, of.steps)
		for i := range labels {
			at := from.Add(time.Duration(i) * of.step)
			labels[i] = at.Format(of.label)
			out.Steps = append(out.Steps, stepSpent{At: v.moment(at), Label: labels[i], Calls: grouped(calls[i]), Tokens: grouped(tokens[i])})
		}
		out.Plots = []plot{plotOf(of.id+"-calls", "Model calls", of.each, calls, labels), plotOf(of.id+"-tokens", "Tokens", of.each, tokens, labels)}
		view.Spent = append(view.Spent, out)
	}
	return nil
}

// modelsOf are the sums of each agent and model, in the order in which they come.
func modelsOf(rows []store.Spent) (out []spentRow) {
	sums := map[[2]string]*store.Spent{}
	for _, r := range rows {
		at := [2]string{r.Agent, r.Model}
		if sums[at] == nil {
			sums[at] = &store.Spent{Agent: r.Agent, Model: r.Model}
		}
		s := sums[at]
		s.Calls += r.Calls
		s.Usage = agent.Usage{Input: s.Usage.Input + r.Usage.Input, CacheRead: s.Usage.CacheRead + r.Usage.CacheRead, CacheWrite: s.Usage.CacheWrite + r.Usage.CacheWrite,
			Output: s.Usage.Output + r.Usage.Output, Reasoning: s.Usage.Reasoning + r.Usage.Reasoning}
	}
	keys := map[string]*store.Spent{}
	for at, s := range sums {
		keys[at[0]+"\x00"+at[1]] = s
	}
	for _, k := range sortedKeys(keys) {
		s := keys[k]
		out = append(out, spentRow{Agent: s.Agent, Model: s.Model, Calls: grouped(int64(s.Calls)), Input: grouped(s.Usage.Input + s.Usage.CacheWrite), Cached: grouped(s.Usage.CacheRead),
			Output: grouped(s.Usage.Output + s.Usage.Reasoning), All: grouped(s.Usage.Total())})
	}
	return out
}

func plotOf(id, title, each string, values []int64, labels []string) plot {
	most, at, sum := int64(0), 0, int64(0)
	for i, n := range values {
		sum += n
		if n > most {
			most, at = n, i
		}
	}
	p := plot{ID: id, Title: title, Most: grouped(most), First: labels[0], Last: labels[len(labels)-1], Width: plotWidth, Height: plotHeight,
		Desc: fmt.Sprintf("%s by %s: %s in all, at most %s, at %s. The table below has the numbers.", title, each, grouped(sum), grouped(most), labels[at])}
	wide := plotWidth / len(values)
	for i, n := range values {
		b := bar{X: i*wide + wide/8, W: wide - wide/4, Title: labels[i] + ": " + grouped(n)}
		if n > 0 {
			b.H = max(int(float64(n)/float64(most)*plotHeight), 2)
		}
		b.Y = plotHeight - b.H
		p.Bars = append(p.Bars, b)
	}
	return p
}

// grouped is a number with its thousands apart.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 && text[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
