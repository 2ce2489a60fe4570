// Asks for a refund as a customer would, and decides its gate as a reviewer would, by
// HTTP. In a product these are three programs: its backend, the customer's, and the
// reviewer's. Each has an access token of its own, which says what it may do.
import { parseArgs } from 'node:util';
import { Client, type Event, type Gate, Problem } from './client.js';
import { stringify } from './exact.js';

const usage = `usage: node dist/http/main.js --key order-1042 --decide approve|reject
  --order 1042  the order to refund
  --reason TEXT why; a reject needs one
environment: API (http://127.0.0.1:8088), and the access tokens BACKEND, CUSTOMER and REVIEWER`;

const agent = 'refund';

function options() {
  const { values } = parseArgs({
    options: { key: { type: 'string' }, decide: { type: 'string' }, order: { type: 'string', default: '1042' }, reason: { type: 'string' } },
  });
  const { key, decide } = values;
  if (!key || (decide !== 'approve' && decide !== 'reject')) throw new Error('give --key, and --decide approve or --decide reject');
  const as = (who: string) => {
    const token = process.env[who];
    if (!token) throw new Error(`${who} is not set: interlock dev prints it`);
    return new Client(process.env['API'] ?? 'http://127.0.0.1:8088', token);
  };
  return { ...values, key, decide, backend: as('BACKEND'), customer: as('CUSTOMER'), reviewer: as('REVIEWER') } as const;
}

type Options = ReturnType<typeof options>;

async function main(o: Options): Promise<void> {
  const run = { agent, key: o.key };
  const started = await o.backend.post('/v1/runs', {}, {
    agent,
    key: o.key,
    as_user: 'c-017',
    body: { customer_id: 'c-017' },
    message: { text: `Please refund order ${o.order}, it broke` },
  }, `start-${o.key}`);
  console.log(`${started.new ? 'started' : 'found'} ${started.address}`);
  for await (const event of o.customer.follow(run)) await happened(o, event);
  const end = await o.customer.get('/v1/runs/{agent}/{key}', run);
  console.log(stringify({ status: end.status, phase: end.phase, state: end.state }));
}

// What an event's data is depends on its type; signals and states of other agents
// look the same to this program.
async function happened(o: Options, event: Event): Promise<void> {
  switch (event.type) {
    case 'reply':
      console.log(`agent: ${(event.data as { text: string }).text}`);
      break;
    case 'gate_opened': {
      const { gate } = event.data as { gate: Gate };
      await standing(gate.kind === 'ask' ? answer(o, gate) : decide(o, gate));
    }
  }
}

// A program that is run again tells the run what it knows already: that it has ended,
// or that the gate is decided, is no mistake then.
async function standing(act: Promise<void>): Promise<void> {
  try {
    await act;
  } catch (err) {
    if (!(err instanceof Problem && (err.code === 'ended' || err.code === 'gate_closed'))) throw err;
    console.log(err.message);
  }
}

async function answer(o: Options, gate: Gate): Promise<void> {
  console.log(`agent: ${gate.title} ${stringify(gate.shown)}`);
  const text = 'yes, that one';
  const sent = await o.customer.post('/v1/runs/{agent}/{key}/messages', { agent, key: o.key }, { text }, `yes-${gate.id}`);
  console.log(`customer: ${text} (${sent.receipt.status})`);
}

async function decide(o: Options, opened: Gate): Promise<void> {
  const names = { agent, key: o.key, gate: opened.id };
  const { gate } = await o.reviewer.get('/v1/runs/{agent}/{key}/gates/{gate}', names);
  console.log(`gate ${gate.id}: ${gate.title}: ${gate.tool} ${stringify(gate.args)}`);
  console.log(`because ${gate.policy}; what is shown has digest ${gate.digest}`);
  // The same verdict on the same gate has the same key, however often it is sent.
  const verdict = { digest: gate.digest, verdict: o.decide, ...(o.reason === undefined ? {} : { reason: o.reason }) };
  const decided = await o.reviewer.post('/v1/runs/{agent}/{key}/gates/{gate}/verdict', names, verdict, `${o.decide}-${gate.id}-${gate.digest}`);
  console.log(`reviewer: ${o.decide} gate ${gate.id} (${decided.receipt.status})`);
}

let o: Options;
try {
  o = options();
} catch (err) {
  console.error(`${(err as Error).message}\n${usage}`);
  process.exit(2);
}
try {
  await main(o);
} catch (err) {
  console.error(err instanceof Problem ? `${err.code}: ${err.message}` : err);
  process.exitCode = 1;
}
