// Written by `go test ./examples/typescript -update` from signals/schemas; do not edit.

/** Payload of the signal and of the update named amend: sets fields of the state from outside. fields is an object of new values; null sets a field's zero value. */
export interface Amend {
  fields: unknown;
  id: string;
  principal: Principal;
  reason?: string;
  token?: string;
  trace_id?: string;
}

/** Payload of the signal and of the update named cancel: ends the run once its running steps have ended. undo is what is undone before: none, turn or run. */
export interface Cancel {
  id: string;
  principal: Principal;
  reason?: string;
  token?: string;
  trace_id?: string;
  undo?: string;
}

/** Payload of the signal and of the update named confirm_ruling: makes the draft of a ruling, which the model proposed, binding. */
export interface Confirm_ruling {
  id: string;
  principal: Principal;
  reason?: string;
  ruling: string;
  token?: string;
  trace_id?: string;
}

/** The result of a run's workflow. */
export interface End {
  phase: string;
  reason?: string;
  state: unknown;
  status: string;
}

export interface Gate {
  approvals?: {
    at: string;
    by: Principal;
    reason?: string;
    verified: boolean;
  }[] | null;
  args: unknown;
  askers?: string[] | null;
  by?: Principal | null;
  closed_at?: string | null;
  digest: string;
  distinct?: boolean;
  edit?: string[] | null;
  escalation?: {
    at: string;
    done?: boolean;
    roles: string[] | null;
  } | null;
  expires_at?: string | null;
  id: string;
  kind: string;
  opened_at: string;
  pending?: {
    at: string;
    by: Principal;
    reason?: string;
    until: string;
    verdict: string;
    verified: boolean;
  } | null;
  policy?: string;
  quorum?: number;
  reads?: string[] | null;
  reason?: string;
  replaces?: string;
  risk?: string;
  roles?: string[] | null;
  rulings?: string[] | null;
  schema?: unknown;
  seq?: number;
  shown?: Record<string, unknown>;
  status: string;
  step?: string;
  take_back?: number;
  title: string;
  tool: string;
  verdict?: string;
  verified: boolean;
}

export interface GateOutcome {
  at?: string | null;
  by?: string;
  id: string;
  status: string;
}

/** Payload of the signal and of the update named lift_ruling: ends a reviewer's remembered refusal, or drops the draft of one. */
export interface Lift_ruling {
  id: string;
  principal: Principal;
  reason: string;
  ruling: string;
  token?: string;
  trace_id?: string;
}

/** Payload of the signal and of the update named message: what the user says. policy is what it does while the run is busy: queue, reject, interrupt or rollback; none: the agent's own. */
export interface Message {
  id: string;
  policy?: string;
  principal: Principal;
  text: string;
  token?: string;
  trace_id?: string;
}

/** What the update named wait answers. again: nothing new yet, ask again. */
export interface News {
  again?: boolean;
  gates?: Gate[] | null;
  phase: string;
  reason?: string;
  reply?: Reply | null;
  seq: number;
  status: string;
}

/** Payload of the signal and of the update named pause: nothing new starts until the run is resumed. */
export interface Pause {
  id: string;
  principal: Principal;
  reason?: string;
  token?: string;
  trace_id?: string;
}

export interface Principal {
  auth?: string;
  roles?: string[] | null;
  subject: string;
  tenant?: string;
}

/** What every update answers. */
export interface Receipt {
  code?: string;
  gate?: GateOutcome | null;
  reason?: string;
  run: string;
  seq?: number;
  status: string;
  took?: {
    how: string;
    stopping?: string[] | null;
    turn?: number;
  } | null;
}

export interface Reply {
  last?: boolean;
  seq: number;
  text: string;
}

/** Payload of the signal and of the update named resume: lets a paused run go on. */
export interface Resume {
  id: string;
  principal: Principal;
  reason?: string;
  token?: string;
  trace_id?: string;
}

/** The one argument of every run's workflow. The workflow type is the agent's name, the workflow id is <tenant>/<agent>/<key>. */
export interface Start {
  after?: string;
  agent: string;
  body?: unknown;
  id?: string;
  key: string;
  message?: Message | null;
  principal: Principal;
  repair?: {
    address: string;
    first_run_id: string;
    id: string;
    ordinals?: Record<string, number>;
    reason: string;
    scope: string;
    state?: unknown;
    steps: {
      args: unknown;
      compensation: string;
      effect: string;
      id: string;
      key: string;
      ordinal?: number;
      result: unknown;
      seq: number;
      tool: string;
      turn?: number;
    }[] | null;
    turn: number;
  } | null;
  tenant: string;
  token?: string;
  trace_id?: string;
  user?: string;
  version?: number;
}

/** Payload of the signal and of the update named undo: asks that steps which happened be undone, one after the other, the last first. */
export interface Undo {
  id: string;
  principal: Principal;
  reason: string;
  steps: string[] | null;
  token?: string;
  trace_id?: string;
}

/** Payload of the signal and of the update named verdict: a person's decision about one gate as it was shown. verdict is approve, reject, return or edit, the last three with a reason, and an edit with the new arguments, whole; of a question it is answer, with the answer; of a step in doubt it is happened, with a result, or did_not_happen, each with the reason. */
export interface Verdict {
  again?: boolean;
  answer?: {
    confirm?: boolean | null;
    fields?: unknown;
  } | null;
  args?: unknown;
  digest: string;
  gate: string;
  id: string;
  principal: Principal;
  reason?: string;
  result?: unknown;
  token?: string;
  trace_id?: string;
  verdict: string;
}

/** Payload of the update named wait, which answers with news when something stands after event after_seq. */
export interface Wait {
  after_seq: number;
}

/** One member of what the query named waiting answers, a list: what the run waits for, since when, until when and for whom. */
export interface Waiting {
  for: string;
  gate?: string;
  since: string;
  step?: string;
  then?: string;
  until?: string | null;
  what: string;
  who?: string[] | null;
}
