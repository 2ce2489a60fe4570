package web

import "interlock/agent"

// statusView is a status as word, symbol and colour: no one of them alone says it.
type statusView struct{ Word, Symbol, Colour string }

func runStatus(s agent.RunStatus) statusView {
	v := map[agent.RunStatus]statusView{
		agent.RunRunning: {"", "▶", "blue"}, agent.RunWaiting: {"", "◷", "amber"}, agent.RunPaused: {"", "‖", "amber"},
		agent.RunCompleted: {"", "✓", "green"}, agent.RunCancelled: {"", "⊘", "grey"}, agent.RunFailed: {"", "✗", "red"},
	}[s]
	v.Word = string(s)
	return v
}

func stepStatus(s agent.StepStatus) statusView {
	v := map[agent.StepStatus]statusView{
		agent.StepWaiting: {"", "◷", "amber"}, agent.StepRunning: {"", "▶", "blue"}, agent.StepDone: {"", "✓", "green"},
		agent.StepRefused: {"", "✗", "red"}, agent.StepFailed: {"", "✗", "red"}, agent.StepRejected: {"", "✗", "red"},
		agent.StepReturned: {"", "↩", "grey"}, agent.StepEdited: {"", "✎", "grey"}, agent.StepExpired: {"", "◷", "grey"},
		agent.StepVoid: {"", "∅", "grey"}, agent.StepWithdrawn: {"", "↩", "grey"}, agent.StepCancelled: {"", "⊘", "grey"},
		agent.StepAbandoned: {"", "⊘", "grey"}, agent.StepInDoubt: {"", "?", "amber"}, agent.StepUndone: {"", "↶", "grey"},
	}[s]
	v.Word = string(s)
	if s == agent.StepInDoubt {
		v.Word = "in doubt"
	}
	return v
}

func gateStatus(s agent.GateStatus) statusView {
	v := map[agent.GateStatus]statusView{
		agent.GateOpen: {"", "◇", "blue"}, agent.GateApproved: {"", "✓", "green"}, agent.GateRejected: {"", "✗", "red"},
		agent.GateReturned: {"", "↩", "grey"}, agent.GateEdited: {"", "✎", "green"}, agent.GateAnswered: {"", "✓", "green"},
		agent.GateResolved: {"", "✓", "green"}, agent.GateExpired: {"", "◷", "grey"}, agent.GateVoid: {"", "∅", "grey"},
		agent.GateWithdrawn: {"", "↩", "grey"},
	}[s]
	v.Word = string(s)
	return v
}
