package agent

import "time"

// View is the part of a run that the model is shown. It is the input of the
// model call, so Temporal's history holds one with every turn; its size is
// bounded by [Limits].View whatever the run's length.
type View struct {
	Agent      string               `json:"agent"`
	Version    int                  `json:"version"`
	Turn       int                  `json:"turn"`
	At         time.Time            `json:"at"` // when the turn began
	Phase      string               `json:"phase"`
	LastWord   bool                 `json:"last_word,omitempty"`
	Limit      int                  `json:"limit"` // of this view in bytes, as the run has it
	State      JSON                 `json:"state"` // without fields tagged view:"-"; sensitive ones masked
	Provenance map[string]ViewField `json:"provenance,omitempty"`
	Facts      []Fact               `json:"facts,omitempty"`
	Rulings    []ViewRuling         `json:"rulings,omitempty"`
	Waiting    []ViewGate           `json:"waiting,omitempty"`  // open gates
	Running    []string             `json:"running,omitempty"`  // steps whose outcome comes later
	InDoubt    []string             `json:"in_doubt,omitempty"` // steps of which a person must find out whether they happened
	Turns      []ViewTurn           `json:"turns,omitempty"`    // recent, oldest first; the last has no proposal
	Earlier    Trimmed              `json:"earlier,omitzero"`   // what is no longer shown
	Left       Left                 `json:"left"`
}

// ViewField is a field's provenance as the model is shown it.
type ViewField struct {
	Source     string     `json:"source"`
	Turn       int        `json:"turn,omitempty"`
	VerifiedAt *time.Time `json:"verified_at,omitempty"`
	Shown      bool       `json:"shown,omitempty"`     // code has shown the present value to the user
	Confirmed  string     `json:"confirmed,omitempty"` // the user's words
}

// ViewRuling is a reviewer's refusal as the model is shown it.
type ViewRuling struct {
	Tool   string   `json:"tool"`
	Title  string   `json:"title"`
	Reason string   `json:"reason"`
	Reads  []string `json:"reads,omitempty"`
	Binds  bool     `json:"binds"`            // the fields it read are unchanged
	Draft  bool     `json:"draft,omitempty"`  // no person has confirmed it
	Lifted bool     `json:"lifted,omitempty"` // by a person
}

// ViewGate is an open gate as the model is shown it.
type ViewGate struct {
	ID        string     `json:"id"`
	Tool      string     `json:"tool"`
	Title     string     `json:"title"`
	Roles     []string   `json:"roles,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Quorum    int        `json:"quorum,omitempty"`   // how many must approve, where that is more than one
	Approved  int        `json:"approved,omitempty"` // how many have
	Replaces  string     `json:"replaces,omitempty"` // the step in whose place it stands
}

// ViewTurn is a turn with the results of its steps.
type ViewTurn struct {
	N       int        `json:"n"`
	Opening []Item     `json:"opening,omitempty"`
	Text    string     `json:"text,omitempty"`
	Calls   []ViewCall `json:"calls,omitempty"`
	Cut     string     `json:"cut,omitempty"`
	Model   string     `json:"model,omitempty"`
	Opaque  JSON       `json:"opaque,omitempty"`
	Results []ViewItem `json:"results,omitempty"` // of the steps that Opening tells of
}

// ViewCall is one call of a proposal with its one answer.
type ViewCall struct {
	ID         string   `json:"id"`
	ProviderID string   `json:"provider_id,omitempty"`
	Tool       string   `json:"tool"`
	Args       JSON     `json:"args"`
	Answer     ViewItem `json:"answer"`
	Read       *Read    `json:"read,omitempty"` // filled in by the activity, from the store
}

// ViewItem is what became of a call. Result is whole, a marked part, or absent.
type ViewItem struct {
	Step    string `json:"step,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Status  string `json:"status"`
	Text    string `json:"text,omitempty"`
	Result  JSON   `json:"result,omitempty"`
	Part    string `json:"part,omitempty"`    // the first bytes of a result too large to be shown
	Bytes   int    `json:"bytes,omitempty"`   // of the whole, where it is not Result itself
	Omitted bool   `json:"omitted,omitempty"` // read_result has it
}

// Left is what remains of the budget; nil where there is no limit.
type Left struct {
	Turns      *int   `json:"turns,omitempty"`
	ModelCalls *int   `json:"model_calls,omitempty"`
	Tokens     *int64 `json:"tokens,omitempty"`
}
