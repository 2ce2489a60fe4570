import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApplicationFailure,
  type Client,
  isGrpcDeadlineError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { End, Message, News, Receipt, Start, Verdict, Wait } from './payloads.js';

// A wait is answered after 20 seconds at the latest; any other call is sooner.
const deadlineMs = 30_000;

/** What a run, or Temporal, refuses: a code for programs and a text for people. */
export class RunError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** One run. Every call can be repeated: the run knows the ids that it has had. */
export class Run {
  private constructor(
    private readonly client: Client,
    private readonly handle: WorkflowHandle,
    readonly fresh: boolean, // false: the same start was made before
  ) {}

  get address(): string {
    return this.handle.workflowId;
  }

  /** Starts a run, or finds the one that the same start began; another start under its key is a conflict. */
  static async start(client: Client, taskQueue: string, start: Start): Promise<Run> {
    const workflowId = `${start.tenant}/${start.agent}/${start.key}`;
    const body = digest(start);
    return explained(async () => {
      try {
        const handle = await client.withDeadline(Date.now() + deadlineMs, () =>
          client.workflow.start(start.agent, {
            workflowId,
            taskQueue,
            args: [start],
            workflowIdReusePolicy: 'REJECT_DUPLICATE',
            workflowIdConflictPolicy: 'FAIL',
            memo: { interlock_body: body, interlock_agent: `${start.agent}/v${start.version ?? 0}` },
          }),
        );
        return new Run(client, handle, true);
      } catch (err) {
        if (!(err instanceof WorkflowExecutionAlreadyStartedError)) throw err;
        const handle = client.workflow.getHandle(workflowId);
        const { memo } = await client.withDeadline(Date.now() + deadlineMs, () => handle.describe());
        if (memo?.['interlock_body'] !== body) {
          throw new RunError('conflict', `${workflowId} was started with another body, user or first message: use a new key, or send the same start again`);
        }
        return new Run(client, handle, false);
      }
    });
  }

  message(message: Message): Promise<Receipt> {
    return this.send('message', message);
  }

  /** The receipt's status is void where the verdict decided nothing: its gate has closed, or shows other values now. */
  decide(verdict: Verdict): Promise<Receipt> {
    return this.send('verdict', verdict);
  }

  /** Waits for something new after an event: a reply, a gate, a pause, the end. */
  async wait(afterSeq: number): Promise<News> {
    for (;;) {
      try {
        const news = await this.update<News, Wait>('wait', { after_seq: afterSeq });
        if (!news.again) return news;
      } catch (err) {
        // Too many wait already, or no worker is up. Both pass.
        if (!(err instanceof RunError && err.code === 'unavailable')) throw err;
        console.error(`still waiting: ${err.message}`);
      }
      await sleep(500); // a run that is about to be continued says "again" at once
    }
  }

  /** How the run ended; waits until it has. */
  end(): Promise<End> {
    return explained(() => this.handle.result() as Promise<End>);
  }

  private async send<Payload>(name: string, payload: Payload): Promise<Receipt> {
    const receipt = await this.update<Receipt, Payload>(name, payload);
    if (receipt.status === 'refused') throw new RunError(receipt.code ?? 'internal', receipt.reason ?? `the ${name} was refused`);
    return receipt;
  }

  // Temporal's own update id is left to the client: Temporal would give the old
  // answer to an old id, a refusal too, whereas the run looks at the payload's.
  private update<Answer, Payload>(name: string, payload: Payload): Promise<Answer> {
    return explained(() =>
      this.client.withDeadline(Date.now() + deadlineMs, () => this.handle.executeUpdate<Answer, [Payload]>(name, { args: [payload] })),
    );
  }
}

// Errors of a run carry their code as the failure's type.
async function explained<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (err) {
    if ((err instanceof WorkflowUpdateFailedError || err instanceof WorkflowFailedError) && err.cause instanceof ApplicationFailure) {
      // Temporal's word for an update that was taken in by a run that then ended.
      const over = err.cause.type === 'AcceptedUpdateCompletedWorkflow';
      throw new RunError(over ? 'ended' : (err.cause.type ?? 'internal'), err.cause.message);
    }
    if (err instanceof WorkflowFailedError) throw new RunError('ended', `${err.message}: ${err.cause?.message}`); // terminated, timed out
    if (err instanceof WorkflowNotFoundError) throw new RunError('ended', `${err.workflowId}: ${err.message}`);
    if (err instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isGrpcDeadlineError(err)) {
      throw new RunError('unavailable', 'no answer in time: is a worker up? Send the same again');
    }
    throw err;
  }
}

// What makes a start the same start: the first half of the SHA-256 of canonical JSON.
function digest(start: Start): string {
  const parts: unknown[] = [start.agent, start.user || start.principal.subject, start.body === undefined ? {} : start.body];
  if (start.message) parts.push(start.message.id, start.message.text);
  return createHash('sha256').update(canonical(parts)).digest('hex').slice(0, 32);
}

// Keys sorted and no white space. For strings, and for numbers up to 2^53,
// JSON.stringify writes what the runs' own code writes.
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).filter(([, v]) => v !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${canonical(v)}`).join()}}`;
}
