import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { components, paths } from './api.js';
import { parse, stringify } from './exact.js';

type Schemas = components['schemas'];
export type Event = Schemas['Event'];
export type Gate = Schemas['Gate'];

type JSONOf<T> = T extends { content: { 'application/json': infer J } } ? J : never;
type Operation<P extends keyof paths, M extends 'get' | 'post'> = NonNullable<paths[P][M]>;
type Names<O> = O extends { parameters: { path: infer N } } ? N : Record<string, never>;
type Body<O> = O extends { requestBody?: infer B } ? JSONOf<NonNullable<B>> : never;
type Answer<O> = O extends { responses: { 200: infer R } } ? JSONOf<R> : never;

/** What the API refuses: decide on its code; the message is for people. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    readonly retryAfterMs = 0,
  ) {
    super(message);
  }
}

const patienceMs = 60_000; // for a request; a stream comes again for as long as it is wanted
const answerMs = 35_000; // a server answers within 25 seconds
const silenceMs = 45_000; // a stream says something every 15 seconds, if only that it is there

/** One caller of the API: who that is says their access token. */
export class Client {
  constructor(
    private readonly base: string,
    private readonly token: string,
  ) {}

  get<P extends keyof paths, O extends Operation<P, 'get'>>(path: P, names: Names<O>): Promise<Answer<O>> {
    return this.ask('GET', fill(path, names)) as Promise<Answer<O>>;
  }

  /** The key is kept while the request is sent again: so it takes effect once. */
  post<P extends keyof paths, O extends Operation<P, 'post'>>(path: P, names: Names<O>, body: Body<O>, key: string = randomUUID()): Promise<Answer<O>> {
    return this.ask('POST', fill(path, names), stringify(body), key) as Promise<Answer<O>>;
  }

  private async ask(method: string, path: string, body?: string, key?: string): Promise<unknown> {
    const until = Date.now() + patienceMs;
    for (let tries = 0; ; tries++) {
      try {
        const headers: Record<string, string> = key === undefined ? {} : { 'Content-Type': 'application/json', 'Idempotency-Key': JSON.stringify(key) };
        const res = await this.send(path, { method, headers, body: body ?? null, signal: AbortSignal.timeout(answerMs) });
        return parse(await res.text());
      } catch (err) {
        const pause = pauseAfter(err, tries);
        if (pause === undefined || Date.now() + pause > until) throw err;
        await sleep(pause);
      }
    }
  }

  // What was sent is sent nowhere else, so nothing is redirected.
  private async send(path: string, init: RequestInit): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${this.token}` };
    const res = await fetch(this.base + path, { ...init, headers, redirect: 'manual' });
    if (res.ok) return res;
    const said = await res.text();
    const retryAfterMs = 1000 * Number(res.headers.get('Retry-After') ?? 0);
    if (!res.headers.get('Content-Type')?.startsWith('application/problem+json')) {
      throw new Problem('unavailable', res.status, `${res.status} ${res.statusText}: not an answer of the API's`, retryAfterMs);
    }
    const p = parse(said) as Schemas['Problem'];
    throw new Problem(p.code, res.status, p.detail ?? p.title, retryAfterMs);
  }

  /**
   * The journal of a run, event by event, to its end: each once and in order, whatever
   * becomes of connections and servers. Pieces of an answer that is on its way are
   * handed to onDelta; they count for nothing, since the answer follows.
   */
  async *follow(names: { agent: string; key: string }, after = 0, onDelta: (text: string) => void = () => {}): AsyncGenerator<Event> {
    let last = after;
    let place = String(after); // which run's event that is, too, once one was received
    let retryMs = 2000;
    for (let tries = 0; ; tries++) {
      let asked = 0;
      try {
        for await (const frame of this.frames(fill('/v1/runs/{agent}/{key}/stream', names), place)) {
          tries = -1;
          if (frame.id !== undefined) place = frame.id;
          if (frame.retryMs !== undefined) retryMs = frame.retryMs;
          if (frame.event === 'end') return;
          if (frame.event === 'delta') onDelta((parse(frame.data) as { text: string }).text);
          if (frame.event === 'problem') {
            const p = parse(frame.data) as Schemas['Problem'];
            throw new Problem(p.code, p.status, p.detail ?? p.title);
          }
          if (frame.event !== undefined || frame.data === '') continue;
          const event = parse(frame.data) as Event;
          if (event.seq <= last) continue;
          last = event.seq;
          yield event;
        }
      } catch (err) {
        const pause = pauseAfter(err, 0);
        if (pause === undefined) throw err;
        asked = pause; // the server may want more time than usual
      }
      const most = Math.min(30_000, retryMs * 2 ** Math.max(0, tries));
      await sleep(Math.max(asked, most / 2 + (Math.random() * most) / 2));
    }
  }

  /** The frames of one connection, until it breaks. */
  private async *frames(path: string, lastEventID: string): AsyncGenerator<Frame> {
    const gone = new AbortController();
    const timer = setTimeout(() => gone.abort(new TypeError('nothing was heard of the stream')), silenceMs);
    try {
      const res = await this.send(path, { headers: { 'Last-Event-ID': lastEventID }, signal: gone.signal });
      let rest = '';
      for await (const piece of res.body!.pipeThrough(new TextDecoderStream())) {
        timer.refresh();
        const blocks = (rest + piece).split('\n\n');
        rest = blocks.pop()!; // half a frame is none
        for (const block of blocks) yield frameOf(block);
      }
    } finally {
      clearTimeout(timer);
      gone.abort();
    }
  }
}

interface Frame {
  id?: string;
  event?: string;
  data: string;
  retryMs?: number;
}

function frameOf(block: string): Frame {
  const frame: Frame = { data: '' };
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    const value = line.slice(colon + 2);
    switch (line.slice(0, Math.max(0, colon))) {
      case 'id':
        frame.id = value;
        break;
      case 'event':
        frame.event = value;
        break;
      case 'data':
        frame.data += value;
        break;
      case 'retry':
        frame.retryMs = Number(value);
    }
  }
  return frame;
}

// How long to wait before the same is sent again; undefined: that cannot help.
function pauseAfter(err: unknown, tries: number): number | undefined {
  const most = Math.min(10_000, 200 * 2 ** tries);
  const pause = most / 2 + (Math.random() * most) / 2;
  if (err instanceof Problem) return [429, 502, 503, 504].includes(err.status) ? Math.max(pause, err.retryAfterMs) : undefined;
  // Of fetch: a connection that broke, and one that was given up.
  return err instanceof TypeError || (err instanceof DOMException && err.name === 'TimeoutError') ? pause : undefined;
}

function fill(path: string, names: object): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent((names as Record<string, string>)[name]!));
}
