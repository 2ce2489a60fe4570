package replaytests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"interlock/agent"
)

// chain is a file that holds the Temporal runs of one run, oldest first. A file
// of one history has "events" instead, as Temporal's own tools write it.
type chain struct {
	// Earlier is the Temporal run before the first one here, which Temporal had
	// forgotten when the file was written.
	Earlier string            `json:"earlier,omitempty"`
	Runs    []json.RawMessage `json:"runs"`
}

// CheckFile is [Check] of each history in a file: one, as `temporal workflow
// show --output json` writes it, or those of a long run's Temporal runs, as
// [Export] does. Its errors name the file, and which of several.
func CheckFile(path string, agents ...*agent.Definition) error {
	name := filepath.Base(path)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("history %s: %w", name, err)
	}
	all, err := Histories(data)
	if err != nil {
		return fmt.Errorf("history %s: %w", name, err)
	}
	for i, h := range all {
		err := Check(h, agents...)
		if err != nil && len(all) > 1 {
			err = fmt.Errorf("run %d of %d of its chain (%s): %w", i+1, len(all), runID(h), err)
		}
		if err != nil {
			return fmt.Errorf("history %s: %w", name, err)
		}
	}
	return nil
}

// Histories reads what a file holds: one history or several, oldest first.
func Histories(data []byte) ([]*historypb.History, error) {
	var c chain
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("it is no history in Temporal's JSON form: %w", err)
	}
	if _, several := top["runs"]; !several {
		c.Runs = []json.RawMessage{data}
	} else if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("it is no list of histories: %w", err)
	}
	var out []*historypb.History
	for _, raw := range c.Runs {
		h, err := client.HistoryFromJSON(bytes.NewReader(raw), client.HistoryJSONOptions{})
		if err != nil {
			return nil, fmt.Errorf("it is no history in Temporal's JSON form: %w", err)
		}
		out = append(out, h)
	}
	if len(out) == 0 {
		return nil, errNoEvents
	}
	return out, nil
}

// write is a file's text: in the form of a single history where that says all.
// Payloads stay as they were encoded, since written out as JSON they would lose
// exact numbers.
func write(runs []*historypb.History, earlier string) ([]byte, error) {
	c := chain{Earlier: earlier}
	for _, h := range runs {
		raw, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
		if err != nil {
			return nil, fmt.Errorf("history of Temporal run %s: %w", runID(h), err)
		}
		c.Runs = append(c.Runs, raw)
	}
	if len(runs) == 1 && earlier == "" {
		return append(slices.Clone(c.Runs[0]), '\n'), nil
	}
	data, err := json.Marshal(c)
	return append(data, '\n'), err
}

var errNoEvents = errors.New("it has no events")

// runID is the Temporal run of a history.
func runID(h *historypb.History) string {
	if len(h.GetEvents()) == 0 {
		return ""
	}
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
}
