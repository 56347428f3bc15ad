import { migrate } from '../../src/migrations/migrate.js';
import { buildCollection, buildProject } from './build-project.js';
import { buildWebhook, countUndelivered } from './build-webhook.js';
import { eventually } from './eventually.js';
import { openRandom } from './random.js';
import { startService, type RunningService } from './run-binary.js';
import { openTempDir } from './temp-dir.js';
import { openWebhookReceiver, type WebhookReceiver } from './webhook-receiver.js';
import { withApp } from './with-app.js';

const WRITERS = 4;
/**
 * Between two kills so many changes are answered at least, and fewer than so many more; which it is follows from the
 * seed.
 */
const MIN_CHANGES = 10;
const MORE_CHANGES = 60;
const SEED = 20_261_121;

/** What the writers know of one document. */
interface History {
  id: string;
  /** Actions whose answer arrived, and those whose answer was cut off: they may have happened or not. */
  acknowledged: string[];
  unsure: string[];
}

export interface CrashReport {
  rounds: number;
  documents: number;
  acknowledged: number;
  unsure: number;
  /** Requests at the receiver, and distinct webhook-ids among them. */
  requests: number;
  events: number;
  missing: string[];
  tooMany: string[];
  outOfOrder: string[];
  /** Deliveries that are not `delivered` at the end. */
  undelivered: number;
  settledAfterMs: number;
}

export interface CrashOptions {
  rounds: number;
  onRound?: (round: number) => void;
}

/**
 * Writes to a real server while it and the worker are killed (SIGKILL) in turn, then compares what was answered with
 * what a receiver got.
 */
export async function runCrashRounds({ rounds, onRound }: CrashOptions): Promise<CrashReport> {
  const dir = await openTempDir();
  const env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'error', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_PORT: '0' };
  const receiver = await openWebhookReceiver();
  const secret = await prepare(env, receiver);
  const start = {
    server: () => startService(['serve', '--no-worker'], env),
    worker: () => startService(['worker'], env),
  };
  const running = { server: await start.server(), worker: await start.worker() };
  const histories: History[] = [];
  const writing = { over: false };
  const done = Array.from({ length: WRITERS }, () => writeUntilOver(running, secret, histories, writing));
  const random = openRandom(SEED);
  const answered = (): number => histories.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  try {
    for (let round = 1; round <= rounds; round++) {
      const enough = answered() + MIN_CHANGES + random.below(MORE_CHANGES);
      await eventually('changes are answered', () => answered() >= enough);
      const victims =
        round % 3 === 0 ? (['server', 'worker'] as const) : ([round % 3 === 1 ? 'server' : 'worker'] as const);
      await Promise.all(
        victims.map(async (name) => {
          await running[name].stop('SIGKILL');
          running[name] = await start[name]();
        }),
      );
      onRound?.(round);
    }
    writing.over = true;
    await Promise.all(done);
    const begun = Date.now();
    const missing = () => histories.flatMap((history) => findMissing(history, receiver));
    await eventually('every answered change has arrived', () => missing().length === 0, 120_000).catch(() => undefined);
    const undelivered = await awaitDeliveries(env);
    return summarise(rounds, histories, receiver, undelivered, Date.now() - begun);
  } finally {
    writing.over = true;
    await Promise.all([running.server.stop('SIGKILL'), running.worker.stop('SIGKILL')]);
    await receiver.close();
    await dir.remove();
  }
}

function prepare(env: Record<string, string>, receiver: WebhookReceiver): Promise<string> {
  return withApp(env, async (app) => {
    await migrate(app.db);
    const { project, secret } = await buildProject(app);
    await buildCollection(app, project, { name: 'posts' });
    await buildWebhook(app, project, receiver.url);
    return secret;
  });
}

/** Makes documents one after the other, changes each some times and deletes it, keeping book of every answer. */
async function writeUntilOver(
  running: { server: RunningService },
  key: string,
  histories: History[],
  writing: { over: boolean },
): Promise<void> {
  const call = async (method: string, path: string, body?: object): Promise<Record<string, unknown> | null> => {
    try {
      const answer = await fetch(`${running.server.ready.url}/api/data/${path}`, {
        method,
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: body && JSON.stringify(body),
      });
      return answer.ok ? ((await answer.json()) as Record<string, unknown>) : null;
    } catch {
      return null;
    }
  };
  const change = async (history: History, action: string, method: string, body?: object): Promise<void> => {
    const answered = await call(method, `posts/${history.id}`, body);
    (answered ? history.acknowledged : history.unsure).push(action);
  };
  while (!writing.over) {
    const created = await call('POST', 'posts', { title: 'crash', rev: 0 });
    if (!created) {
      // The server is being started again.
      await new Promise((resolve) => setTimeout(resolve, 20));
      continue;
    }
    const history: History = { id: created._id as string, acknowledged: ['insert'], unsure: [] };
    histories.push(history);
    for (let rev = 1; rev <= 3 && !writing.over; rev++) await change(history, 'update', 'PATCH', { rev });
    if (histories.length % 2 === 0) {
      await change(history, 'delete', 'DELETE', undefined);
    } else if (!writing.over) {
      const removed = await call('DELETE', `posts/${history.id}?permanent=true`);
      (removed ? history.acknowledged : history.unsure).push('delete');
    }
  }
}

/** Distinct events of a document in the order in which each arrived first. */
function arrivalsOf(id: string, receiver: WebhookReceiver): string[] {
  const seen = new Map<string, string>();
  for (const { event } of index(receiver).get(id) ?? [])
    if (!seen.has(event.id)) seen.set(event.id, String(event.action));
  return [...seen.values()];
}

const indexes = new WeakMap<WebhookReceiver, { upTo: number; byDocument: Map<string, WebhookReceiver['received']> }>();

function index(receiver: WebhookReceiver): Map<string, WebhookReceiver['received']> {
  const known = indexes.get(receiver) ?? { upTo: 0, byDocument: new Map<string, WebhookReceiver['received']>() };
  for (; known.upTo < receiver.received.length; known.upTo++) {
    const request = receiver.received[known.upTo]!;
    const list = known.byDocument.get(request.event.documentId);
    if (list) list.push(request);
    else known.byDocument.set(request.event.documentId, [request]);
  }
  indexes.set(receiver, known);
  return known.byDocument;
}

const count = (actions: readonly string[], action: string): number => actions.filter((one) => one === action).length;

function findMissing({ id, acknowledged }: History, receiver: WebhookReceiver): string[] {
  const arrived = arrivalsOf(id, receiver);
  return [...new Set(acknowledged)]
    .filter((action) => count(arrived, action) < count(acknowledged, action))
    .map((action) => `${id} ${action}`);
}

function summarise(
  rounds: number,
  histories: readonly History[],
  receiver: WebhookReceiver,
  undelivered: number,
  settledAfterMs: number,
): CrashReport {
  const order = ['insert', 'update', 'delete'];
  const outOfOrder: string[] = [];
  const tooMany: string[] = [];
  for (const { id, acknowledged, unsure } of histories) {
    const arrived = arrivalsOf(id, receiver);
    if (arrived.some((action, at) => at > 0 && order.indexOf(action) < order.indexOf(arrived[at - 1]!)))
      outOfOrder.push(`${id} ${arrived.join(' ')}`);
    for (const action of order) {
      if (count(arrived, action) > count(acknowledged, action) + count(unsure, action)) tooMany.push(`${id} ${action}`);
    }
  }
  return {
    rounds,
    documents: histories.length,
    acknowledged: histories.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0),
    unsure: histories.reduce((sum, { unsure }) => sum + unsure.length, 0),
    requests: receiver.received.length,
    events: new Set(receiver.received.map(({ event }) => event.id)).size,
    missing: histories.flatMap((history) => findMissing(history, receiver)),
    tooMany,
    outOfOrder,
    undelivered,
    settledAfterMs,
  };
}

/** Waits for what the receiver got beyond the answered changes to be settled too; how many are not. */
function awaitDeliveries(env: Record<string, string>): Promise<number> {
  return withApp(env, async (app) => {
    await eventually('all is delivered', async () => (await countUndelivered(app)) === 0, 60_000).catch(
      () => undefined,
    );
    return countUndelivered(app);
  });
}
