package notice

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// Link is where a person looks at what a notice is about, "" where it is not known
// where the pages are.
func Link(page string, n Notice) string {
	if page == "" || n.Agent == "" || n.Kind == Test {
		return ""
	}
	link := strings.TrimRight(page, "/") + "/runs/" + url.PathEscape(n.Agent) + "/" + url.PathEscape(n.Key)
	if n.Gate != "" {
		link += "/gates/" + url.PathEscape(n.Gate)
	}
	return link
}

// payload is the body of a webhook, in the form of Standard Webhooks.
func payload(n Notice, link string) ([]byte, error) {
	type told struct {
		Notice
		Kind *struct{} `json:"type,omitempty"` // it stands outside
		Link string    `json:"link,omitempty"`
	}
	return json.Marshal(struct {
		Kind Kind      `json:"type"`
		At   time.Time `json:"timestamp"`
		Data told      `json:"data"`
	}{n.Kind, n.At, told{Notice: n, Link: link}})
}

// longest is how much of a text of others is told.
const longest = 200

// headline says what has happened, in a line.
func headline(n Notice) string {
	run, gate := plain(n.Address, longest), "gate "+plain(n.Gate, longest)
	switch n.Kind {
	case RunReplied:
		return run + " has replied"
	case GateOpened:
		return run + " waits at " + gate + " for " + deciders(n.Roles)
	case GateEscalated:
		return gate + " of " + run + " is still open: " + deciders(n.Roles) + " may decide it, too"
	case GateClosed:
		return gate + " of " + run + " is " + plain(string(n.Status), longest) + decidedBy(n)
	case RunEnded:
		return run + " is " + string(n.RunStatus)
	case StepInDoubt:
		return "step " + plain(n.Step, longest) + " of " + run + " is in doubt: somebody must find out whether it happened"
	case Test:
		return "This is a test: notices of Interlock come here"
	}
	return run + ": " + plain(string(n.Kind), longest) // of a newer worker
}

func deciders(roles []string) string {
	switch len(roles) {
	case 0:
		return "its user"
	case 1:
		return "role " + plain(roles[0], longest)
	}
	return "roles " + plain(strings.Join(roles, ", "), longest)
}

func decidedBy(n Notice) string {
	switch {
	case n.DecidedBy == "":
		return ""
	case n.Verified:
		return " by " + plain(n.DecidedBy, longest)
	}
	return " by " + plain(n.DecidedBy, longest) + " (unverified)"
}

// details are the lines below the headline.
func details(n Notice) (lines []string) {
	if n.Title != "" {
		lines = append(lines, plain(n.Title, longest))
	}
	if n.Until != nil {
		lines = append(lines, "Until "+n.Until.UTC().Format("2006-01-02 15:04 MST"))
	}
	return lines
}

// slackBody is what an incoming webhook of Slack takes. The button opens the page;
// none decides anything.
func slackBody(n Notice, link string) ([]byte, error) {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type button struct {
		Type string `json:"type"`
		Text text   `json:"text"`
		URL  string `json:"url"`
	}
	type block struct {
		Type      string  `json:"type"`
		Text      text    `json:"text"`
		Accessory *button `json:"accessory,omitempty"`
	}
	lines := append([]string{headline(n)}, details(n)...)
	section := block{Type: "section", Text: text{"mrkdwn", forSlack(strings.Join(lines, "\n"))}}
	if link != "" {
		section.Accessory = &button{"button", text{"plain_text", "Open"}, link}
	}
	return json.Marshal(struct {
		Text   string  `json:"text"`
		Blocks []block `json:"blocks"`
	}{forSlack(headline(n)), []block{section}})
}

// forSlack escapes what Slack takes for a link, a mention or an entity.
var forSlack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// mailBody is the text of a mail.
func mailBody(n Notice, link string) string {
	lines := append([]string{headline(n)}, details(n)...)
	if link != "" {
		lines = append(lines, "", link, "", "This link only opens the page; nothing is decided by it.")
	}
	return strings.Join(lines, "\n") + "\n"
}
