package agenttest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"interlock/agent"
	"interlock/agenttest"
	"interlock/llm"
	"interlock/llm/scripted"
	"interlock/tool"
)

type trip struct {
	Room   string `json:"room" set:"tool"`
	Flight string `json:"flight" set:"tool"`
}

type book struct {
	Name string `json:"name"`
}

type booked struct {
	ID string `json:"id"`
}

func notHere[A, R any](context.Context, tool.Key, A) (r R, err error) {
	return r, errors.New("not here")
}

// tripAgent books rooms and flights, and can take both back; a flight only with a
// person's leave.
func tripAgent() *agent.Definition {
	type done = tool.Done[book, booked]
	room := tool.Keyed("book_room", notHere[book, booked], func(s *trip, _ book, r booked) error { s.Room = r.ID; return nil }).
		Undo(tool.Keyed("cancel_room", notHere[done, booked], func(s *trip, _ done, _ booked) error { s.Room = ""; return nil }))
	flight := tool.Keyed("book_flight", notHere[book, booked], func(s *trip, _ book, r booked) error { s.Flight = r.ID; return nil }).
		Undo(tool.Keyed("cancel_flight", notHere[done, booked], func(s *trip, _ done, _ booked) error { s.Flight = ""; return nil }).
			Gate(tool.Gate[trip, done]{Roles: []string{"desk"}}))
	tools := []agent.Tool[trip]{room, flight}
	return agent.Define(agent.Spec[struct{}, trip]{Name: "trip", Version: 1, Instructions: "Book.", Init: func(struct{}) (trip, error) { return trip{}, nil },
		Phases: []agent.Phase[trip]{{Name: "work", Tools: tools, Moves: []agent.Move[trip]{{To: "end"}}},
			{Name: "end", Final: true, Say: func(agent.Situation[trip]) string { return "Bye." }}}})
}

// tripRun has booked a room and a flight; calls counts what the other side did.
func tripRun(t *testing.T) (run *agenttest.Run, calls map[string]int) {
	calls = map[string]int{}
	run = agenttest.Start(t, tripAgent(), struct{}{})
	for _, name := range []string{"book_room", "book_flight"} {
		agenttest.Fake(run, name, func(b book) (booked, error) { calls[name]++; return booked{b.Name + "!"}, nil })
	}
	for _, name := range []string{"cancel_room", "cancel_flight"} {
		agenttest.Fake(run, name, func(d tool.Done[book, booked]) (booked, error) {
			require.Equal(t, d.Args.Name+"!", d.Result.ID)
			calls[name]++
			return booked{"gone"}, nil
		})
	}
	run.Says("book")
	run.Propose(scripted.Call("book_room", book{"ann"}), scripted.Call("book_flight", book{"ann"}))
	run.Propose(scripted.Say("Booked."))
	return run, calls
}

func requireExports(t *testing.T, run *agenttest.Run) {
	t.Helper()
	script, err := agenttest.Export(run.Events())
	require.NoError(t, err)
	played, again := agenttest.Play(t, tripAgent(), script)
	require.Equal(t, string(script), string(played))
	require.True(t, same(run.Events(), again.Events()))
}

// Steps of a living run are undone, and the same call then happens again.
func TestUndo(t *testing.T) {
	run, calls := tripRun(t)
	require.Equal(t, agent.Accepted, run.Undo("wrong day", "1.1", "1.2").Status)
	require.Equal(t, agent.StepWaiting, run.Step("2.1").Status, "the flight first, at its gate")
	run.Approve("2.1", "kim", "desk")
	var s trip
	run.State(&s)
	require.Equal(t, trip{}, s)
	require.Equal(t, agent.StepUndone, run.Step("1.1").Status)
	require.Equal(t, map[string]int{"book_room": 1, "book_flight": 1, "cancel_room": 1, "cancel_flight": 1}, calls)

	run.Says("again")
	run.Propose(scripted.Call("book_room", book{"ann"}))
	require.Equal(t, 2, calls["book_room"])
	run.Propose(scripted.Call("book_room", book{"ann"}))
	require.Equal(t, 2, calls["book_room"], "what stands is not done again")
	requireExports(t, run)
}

// An effect that was undone does not stand for the run after a reset, either.
func TestUndo_AfterAReset(t *testing.T) {
	ledger := &agenttest.Ledger{}
	play := func(undo bool) (calls int) {
		run := agenttest.Options{Ledger: ledger}.Start(t, tripAgent(), struct{}{})
		agenttest.Fake(run, "book_room", func(b book) (booked, error) { calls++; return booked{b.Name}, nil })
		agenttest.Fake(run, "cancel_room", func(tool.Done[book, booked]) (booked, error) { return booked{}, nil })
		run.Says("book")
		run.Propose(scripted.Call("book_room", book{"ann"}))
		if undo {
			run.Undo("wrong day", "1.1")
			return calls
		}
		require.Contains(t, run.Step("1.1").Reason, "it happened and was undone")
		run.Propose(scripted.Call("book_room", book{"ann"}))
		return calls
	}
	require.Equal(t, 1, play(true))
	require.Equal(t, 1, play(false), "refused first, and then a new effect")
}

// Steps of an ended run are undone by a run of its own; again is the same effect.
func TestRepair(t *testing.T) {
	run, calls := tripRun(t)
	run.Says("thanks")
	run.Propose(scripted.MoveTo("end"))
	require.Equal(t, agent.RunCompleted, run.Status())
	repair := run.Repair("wrong day", "1.1", "1.2")
	require.Equal(t, run.Run().Scope(), repair.Run().Scope())
	require.Equal(t, run.Run().Address(), repair.Run().Repairs.Address)
	repair.Reject("4.1", "no refund on this fare", "kim", "desk")
	require.Equal(t, agent.RunCompleted, repair.Status())
	require.Equal(t, []string{"1.2 book_flight: stands, its undo, step 4.1, cancel_flight, was rejected by kim: no refund on this fare"}, repair.Run().FailedEnd)
	require.Equal(t, 1, calls["cancel_room"])
	requireExports(t, repair)

	again := run.Repair("once more", "1.1")
	require.Equal(t, agent.RunCompleted, again.Status())
	require.Empty(t, again.Run().FailedEnd)
	require.Equal(t, 1, calls["cancel_room"], "two repairs of one step are one effect")

	// What the repair left standing is undone by a repair of it.
	third := repair.Repair("the airline agrees", "1.2")
	third.Approve("5.1", "kim", "desk")
	require.Empty(t, third.Run().FailedEnd)
	require.Equal(t, 1, calls["cancel_flight"])
	requireExports(t, third)
}

func TestUndo_InAScript(t *testing.T) {
	agenttest.Script(t, tripAgent(), "testdata/trip/*.txt")
}

// actOnTrip does one thing that can be done to a run which books and takes back.
func actOnTrip(t *rapid.T, run *agenttest.Run) {
	for _, s := range run.Run().Steps {
		if s.Status != agent.StepRunning || !rapid.Bool().Draw(t, "end of "+s.ID) {
			continue
		}
		switch err := rapid.SampledFrom([]error{nil, nil, errors.New("down"), tool.Refused(errors.New("no")), tool.NotApplied(errors.New("busy"))}).Draw(t, "error"); err {
		case nil:
			run.Done(s.ID, booked{"b"})
		default:
			run.Fail(s.ID, err)
		}
		return
	}
	switch act := rapid.IntRange(0, 9).Draw(t, "act"); {
	case act < 4 && run.Run().Calling:
		parts := []llm.Response{scripted.Say("hm"), scripted.Call("book_room", book{"a"}), scripted.Call("book_flight", book{"a"}), scripted.Call("book_room", book{"b"})}
		run.Propose(scripted.Then(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 3).Draw(t, "parts")...))
	case act < 4:
		run.Says("book")
	case act < 7:
		ids := []string{"1.1", "9.9"}
		for _, s := range run.Run().Steps {
			ids = append(ids, s.ID)
		}
		run.Undo("so", rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 3, rapid.ID[string]).Draw(t, "undo")...)
	case act == 7 && run.Status() == agent.RunPaused:
		run.Resume()
	case act == 7:
		run.Pause("a look")
	default:
		if n := len(run.Run().Gates); n > 0 {
			v := agent.Verdict{Gate: rapid.SampledFrom(run.Run().Gates).Draw(t, "gate").ID, Reason: "so", Principal: agent.Principal{Subject: "kim", Roles: []string{"desk", agent.DefaultOperator}},
				Verdict: rapid.SampledFrom([]agent.VerdictValue{agent.Approve, agent.Reject, agent.Happened, agent.DidNotHappen}).Draw(t, "verdict")}
			if v.Verdict == agent.Happened {
				v.Result = agent.JSON(`{"id":"found"}`)
			}
			v.Again = v.Verdict == agent.DidNotHappen && rapid.Bool().Draw(t, "again")
			run.Decide(v)
		}
	}
}

// Whatever is undone in whatever order: the run's checks pass, its export gives it
// again, and so does that of a repair of what it left standing.
func TestAnyUndoExports(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		run := agenttest.Start(t, tripAgent(), struct{}{})
		run.Says("book")
		run.Propose(scripted.Call("book_room", book{"a"}), scripted.Call("book_flight", book{"a"}))
		for range rapid.IntRange(1, 25).Draw(rt, "acts") {
			actOnTrip(rt, run)
		}
		requireExports(t, run)
		run.Cancel("the end")
		for _, s := range run.Run().Steps {
			if s.Status == agent.StepRunning {
				run.Done(s.ID, booked{"b"})
			}
		}
		requireExports(t, run)
		for _, s := range run.Run().Steps {
			if s.Status == agent.StepDone && s.Undoes == "" {
				requireExports(t, run.Repair("what is left", s.ID))
				break
			}
		}
	})
}
