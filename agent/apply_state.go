package agent

import (
	"cmp"
	"slices"
)

func applyStateSet(r *Run, e Event, d StateSetData) {
	r.noteFields(e, d)
	r.State = ApplyPatch(r.State, d.Patch)
	if r.Provenance == nil {
		r.Provenance = map[string]Provenance{}
	}
	for _, f := range d.Fields {
		r.Provenance[f] = Provenance{Source: d.Source, By: d.By, Turn: e.Turn, Step: e.Step, Rev: e.Seq}
		if d.Source == SourceRollback {
			r.Provenance[f] = r.setBack(f, e)
		}
	}
	for _, f := range d.Reset {
		r.Provenance[f] = Provenance{Source: "follows", Turn: e.Turn, Step: e.Step, Rev: e.Seq}
	}
	for _, f := range d.Verified {
		p := r.Provenance[f]
		at := e.At
		p.VerifiedAt = &at
		r.Provenance[f] = p
	}
	// A change voids what was shown and confirmed, for good: the same value
	// coming back does not bring the user's yes back.
	r.voidYes(slices.Concat(d.Fields, d.Reset))
}

func applyFact(r *Run, e Event, d FactData) {
	r.Facts = append(r.Facts, Fact{Quote: d.Quote, Turn: e.Turn, Seq: d.Message})
}

func applyPhase(r *Run, e Event, d PhaseEnteredData) {
	r.notePhase(d)
	r.Phase, r.PhaseSeq, r.Final = d.Phase, cmp.Or(d.Since, e.Seq), d.Final
	if d.By == "auto" {
		r.Autos++
		r.outcome(e, "", "Code moved to phase "+d.Phase+".")
	} else {
		r.Autos = 0
	}
}
