package orders

import (
	"time"

	"interlock/agent"
)

// AgentV2 is the next version: a fee is good for 15 minutes.
//
// A guard decides, so it may not change under a run that is on its way: the run
// would no longer do what its history says that it did. Hence a version of its
// own. New runs get it; those that started with version 1 keep that to their end.
//
// How it is deployed: a worker serves both, Agent and AgentV2, until no run of
// version 1 is under way; then Agent's guard is this one, and its version 2. The
// state is the same, so there is nothing to migrate. Its histories stay in
// testdata/histories for as long as its code is served.
func AgentV2(shop Shop) *agent.Definition {
	s := spec(shop)
	s.Version = 2
	s.Phases[0].Moves[0].When = agreedLately
	return agent.Define(s)
}

func agreedLately(s agent.Situation[State]) error {
	if err := agreed(s); err != nil {
		return err
	}
	return s.VerifiedWithin("fee", 15*time.Minute)
}
