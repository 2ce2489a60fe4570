package signals

import (
	"slices"

	"interlock/agent"
)

// maxRepair is the limit of a repair in bytes: Temporal carries it, and the run's
// first event.
const maxRepair = 256 << 10

func checkRepair(s Start, p agent.Repair) error {
	tenant, name, _, ok := SplitAddress(p.Address)
	size, err := agent.Encode(p)
	switch {
	case err != nil:
		return agent.Errorf(agent.CodeInvalid, "the repair is no JSON that is accepted: %w", err)
	case !ok || tenant != s.Tenant || name != s.Agent:
		return agent.Errorf(agent.CodeInvalid, "a repair is of a run of the same tenant and agent, not of %q", short(p.Address))
	case s.Message != nil || len(s.Body) > 0:
		return agent.Errorf(agent.CodeInvalid, "a repair run has neither a body nor a message")
	case s.Version == 0:
		return agent.Errorf(agent.CodeInvalid, "a repair run names its version: that of the run that it repairs")
	case len(size) > maxRepair:
		return agent.Errorf(agent.CodeInvalid, "the repair of %d steps has %d bytes, the limit is %d: undo fewer at a time", len(p.Steps), len(size), maxRepair)
	}
	return nil
}

// RepairKey is the key of the run that undoes these steps of an ended run: the same
// for the same steps, in whatever order.
func RepairKey(key, firstRunID string, steps []string) string {
	j, err := agent.Encode([]any{key, firstRunID, slices.Sorted(slices.Values(steps))})
	if err != nil {
		j = agent.JSON(key)
	}
	return RepairsUnder(key) + agent.DigestOf(j)[:repairMark]
}

const (
	repairMark = 16  // what is shown of the digest, in bytes
	mostOfKey  = 200 // bytes of a key
)

// RepairsUnder is what the keys of all repairs of runs under a key begin with. Keys
// that are long share it: what a run repairs is in its own first event.
func RepairsUnder(key string) string {
	const mark = "+undo-"
	return key[:min(len(key), mostOfKey-len(mark)-repairMark)] + mark
}
