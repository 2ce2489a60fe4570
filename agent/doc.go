// Package agent is the pure domain of Interlock: what an agent is, what a run
// of it holds, and the machine that decides what happens next.
//
// The model proposes, code disposes. The application owns the typed state; the
// model is shown a view of it and answers with a proposal; [Machine] validates
// the proposal and commits what it allows.
//
// # Vocabulary
//
//   - agent: a definition: name, version, typed state, phases, tools, field
//     policies, instructions, budget ([Definition]).
//   - run: one execution of an agent ([Run]).
//   - turn: one model call and the calls that its proposal makes ([Turn]).
//   - proposal: what the model answered, in provider-neutral form ([Proposal]).
//   - step: one call that the run has committed to, with a status ([Step]).
//   - effect: what a tool promises about its side effect when it is retried
//     ([Effect]).
//   - gate: a point at which a person must decide ([Gate]); verdict: what the
//     person decided ([Verdict]).
//   - phase: position in the agent's state machine ([Phase]); move: an allowed
//     transition ([Move]); guard: a condition on it.
//   - fact: something the user said, kept verbatim ([Fact]).
//   - confirmation: the user's yes to values that code showed ([Confirmation]).
//   - ruling: a reviewer's remembered refusal ([Ruling]).
//   - interrupt: what a user or operator does to a run under way.
//   - event: one append-only record of something that changed the run ([Event]).
//   - situation: what guards and predicates are given ([Situation]).
//   - view: the part of the run that the model is shown ([View]).
//   - principal: who acts ([Principal]).
//
// # Purity
//
// Nothing here reads a clock, a random source, a file, the network or the
// environment, and no map is ranged over without sorting its keys. Time and ids
// come in with an [Input] or from counters in the [Run]. The same inputs give
// the same events, byte for byte, on any machine.
package agent
