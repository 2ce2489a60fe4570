package agent

import "slices"

// ViewAt is what the model was shown in a turn, made of the run's events from the
// first one on. It needs no definition, so any reader of a journal can tell.
// CodeNotFound: the run has no such turn yet.
func ViewAt(events []Event, turn int) (View, error) {
	at := slices.IndexFunc(events, func(e Event) bool { return e.Type == EventTurnStarted && e.Turn == turn })
	if at < 0 {
		return View{}, Errorf(CodeNotFound, "the run has had no turn %d", turn)
	}
	run, err := Reduce(events[:at+1])
	if err != nil {
		return View{}, err
	}
	return run.view(run.At), nil
}

// isZero reports a value that a Go type has before anything is set.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case number:
		return v == "0"
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return !slices.ContainsFunc(sortedKeys(v), func(k string) bool { return !isZero(v[k]) })
	}
	return false
}
