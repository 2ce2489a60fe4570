// Asks for a refund as a customer would, and decides its gate as a reviewer
// would. In a product these are two people and two programs; each needs no more
// than the run's address.
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import type { Gate, News } from './payloads.js';
import { Run, RunError } from './run.js';

const usage = `usage: node dist/main.js --tenant acme --key order-1042 --decide approve|reject
  --order 1042      the order to refund
  --customer c-017  whose it is
  --reviewer ann    who decides
  --reason TEXT     why; a reject needs one
  --digest HEX      of the gate as the reviewer saw it; without it, as it stands now
environment: TEMPORAL_ADDRESS (127.0.0.1:7233), TEMPORAL_NAMESPACE (default), INTERLOCK_TASK_QUEUE (interlock)`;

type Options = ReturnType<typeof options>;

function options() {
  const { values } = parseArgs({
    options: {
      tenant: { type: 'string', default: 'acme' },
      key: { type: 'string' },
      decide: { type: 'string' },
      order: { type: 'string', default: '1042' },
      customer: { type: 'string', default: 'c-017' },
      reviewer: { type: 'string', default: 'ann' },
      reason: { type: 'string' },
      digest: { type: 'string' },
    },
  });
  const { key, decide } = values;
  if (!key || (decide !== 'approve' && decide !== 'reject')) throw new Error('give --key, and --decide approve or --decide reject');
  return { ...values, key, decide };
}

async function play(client: Client, o: Options): Promise<void> {
  const run = await Run.start(client, process.env['INTERLOCK_TASK_QUEUE'] ?? 'interlock', {
    agent: 'refund',
    tenant: o.tenant,
    key: o.key,
    principal: { subject: 'backend' },
    user: o.customer,
    body: { customer_id: o.customer },
  });
  console.log(`${run.fresh ? 'started' : 'found'} ${run.address}`);
  try {
    await converse(run, o);
  } catch (err) {
    // It ended in between, or before this program was run again: then what
    // matters is how.
    if (!(err instanceof RunError && err.code === 'ended')) throw err;
    console.log('the run has ended and takes nothing more');
  }
  console.log(JSON.stringify(await run.end()));
}

async function converse(run: Run, o: Options): Promise<void> {
  await say(run, o, 'm-1', `Please refund order ${o.order}, it broke`);
  let news = await say(run, o, 'm-2', 'yes, that one');
  while (!isOver(news)) {
    const gate = reviewersGate(news);
    if (gate) return decide(run, o, gate);
    if (news.status === 'paused' || (news.status === 'waiting' && news.reason === 'user')) {
      throw new RunError('conflict', `there is nothing to decide: the run is ${news.status} (${news.reason})`);
    }
    news = await wait(run, news.seq);
  }
}

async function say(run: Run, o: Options, id: string, text: string): Promise<News> {
  const receipt = await run.message({ id, text, principal: { subject: o.customer } });
  console.log(`customer: ${text} (${receipt.status})`);
  return wait(run, receipt.seq ?? 0);
}

async function wait(run: Run, afterSeq: number): Promise<News> {
  const news = await run.wait(afterSeq);
  if (news.reply) console.log(`agent: ${news.reply.text}`);
  for (const ask of news.gates?.filter(isAsk) ?? []) console.log(`agent: ${ask.title} ${JSON.stringify(ask.shown)}`);
  return news;
}

async function decide(run: Run, o: Options, gate: Gate): Promise<void> {
  console.log(`gate ${gate.id}: ${gate.title}: ${gate.tool} ${JSON.stringify(gate.args)}`);
  console.log(`because ${gate.policy}; what is shown has digest ${gate.digest}`);
  const digest = o.digest ?? gate.digest;
  const receipt = await run.decide({
    // The same verdict on the same gate is the same id, however often it is sent.
    id: `${o.decide}:${gate.id}:${digest}`,
    gate: gate.id,
    digest,
    verdict: o.decide,
    reason: o.reason,
    principal: { subject: o.reviewer, roles: ['refunds'] },
  });
  console.log(`${o.reviewer}: ${o.decide} gate ${gate.id} (${receipt.status})`);
  if (receipt.status === 'void') throw new RunError('void', `the verdict decided nothing: ${receipt.reason}`);
}

const isOver = (news: News) => ['completed', 'cancelled', 'failed'].includes(news.status);

// A question to the customer is a gate too. Their next message answers it.
const isAsk = (gate: Gate) => gate.kind === 'ask';

const reviewersGate = (news: News) => news.gates?.find((gate) => !isAsk(gate));

async function main(o: Options): Promise<void> {
  const address = process.env['TEMPORAL_ADDRESS'] ?? '127.0.0.1:7233';
  const connection = await Connection.connect({ address, connectTimeout: '5s' }).catch((err: Error) => {
    throw new RunError('unavailable', `Temporal at ${address}: ${err.message}`);
  });
  try {
    await play(new Client({ connection, namespace: process.env['TEMPORAL_NAMESPACE'] ?? 'default' }), o);
  } finally {
    await connection.close();
  }
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
  console.error(err instanceof RunError ? `${err.code}: ${err.message}` : err);
  process.exitCode = 1;
}
