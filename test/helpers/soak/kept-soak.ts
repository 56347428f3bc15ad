import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { RETAINED_DATA } from '../../../cli/doctor/retained-data.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { projectStore } from '../../../src/features/projects/project-store.js';
import { migrate } from '../../../src/migrations/migrate.js';
import { buildCollection, buildProject, type TestProject } from '../build-project.js';
import { buildWebhook } from '../build-webhook.js';
import { openRandom, type Random } from '../random.js';
import { startService } from '../run-binary.js';
import { openStreamFollower, type StreamFollower } from '../stream-follower.js';
import { openTempDir } from '../temp-dir.js';
import { openWebhookReceiver } from '../webhook-receiver.js';
import { withApp } from '../with-app.js';
import { openCaller, type SoakCaller, type SoakReply } from './caller.js';

export interface KeptSoak {
  minutes: number;
  seed: number;
  onProgress(line: string): void;
}

export interface KeptSoakReport {
  seed: number;
  minutes: number;
  /** What was answered, by kind and status. */
  requests: Record<string, number>;
  /** Events that the receiver got, and those it refused. */
  delivered: number;
  refused: number;
  /** Changes that followers were told of. */
  told: number;
  /** The data file in MB at the end of each minute. */
  megabytes: number[];
  /** The minute from which on the file has to keep its size, and by how much it grew since, in per cent. */
  settledAt: number;
  grownPercent: number;
  /** Records that are kept in the end, by what they are. */
  kept: Record<string, number>;
  violations: string[];
}

const KEEP = '1m';
/** The time something is kept, and the longest time until a sweep: that of changes runs every five minutes. */
const SETTLED_MINUTES = 7;
const MOST_GROWTH_PERCENT = 5;
const DOCUMENTS = 300;
/** By the second, so that the same is kept at any moment. */
const UPDATES = 20;
const REPLACED = 3;
const MAILS = 3;
const REFUSED = 0.02;
const DATA_FILE = 'bsvc.mdb';
const MASTER_KEY = 'a master key for soaking only: 0123456789abcdef';
const FILTERS = ['', 'n_lt=20'];
const SETTLE_MS = 60_000;

/**
 * Writes, mails, a webhook and followers at an even pace, with all that is kept kept for a minute: once that is over
 * the data file has to keep its size. Needs `npm run build`.
 */
export async function soakKept({ minutes, seed, onProgress }: KeptSoak): Promise<KeptSoakReport> {
  const dir = await openTempDir();
  const random = openRandom(seed);
  const receiver = await openWebhookReceiver();
  const report: KeptSoakReport = {
    ...{ seed, minutes, requests: {}, delivered: 0, refused: 0, told: 0, megabytes: [] },
    ...{ settledAt: Math.min(SETTLED_MINUTES, Math.floor(minutes / 2)), grownPercent: 0, kept: {}, violations: [] },
  };
  receiver.answer = (response) => {
    const isRefused = random.chance(REFUSED);
    report[isRefused ? 'refused' : 'delivered']++;
    receiver.received.length = 0;
    response.writeHead(isRefused ? 500 : 200).end();
  };
  const env = {
    BSVC_DATA_DIR: dir.path,
    BSVC_SECRET_KEY: MASTER_KEY,
    BSVC_LOG_LEVEL: 'error',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
    BSVC_KEEP: KEEP,
  };
  try {
    const owner = await prepare(env, receiver.url);
    const service = await startService(['serve', '--port', '0'], env);
    const { url } = service.ready;
    let isOver = false;
    const caller = openCaller(
      () => url,
      owner,
      () => isOver,
    );
    const followers = FILTERS.map((filter) => openStreamFollower('items', filter));
    const following = followers.map((follower) => follow(follower, caller, report));
    try {
      const ids: string[] = [];
      while (ids.length < DOCUMENTS) await insert(caller, ids, random);
      await Promise.all([
        each(caller, UPDATES, () => update(caller, random.pick(ids), random)),
        each(caller, REPLACED, () => replace(caller, ids, random)),
        each(caller, MAILS, (n) => mail(caller, n)),
        watch(minutes, join(dir.path, DATA_FILE), report, onProgress).finally(() => (isOver = true)),
      ]);
      for (const [n, follower] of followers.entries()) {
        const same = await isSame(caller, follower, FILTERS[n]!);
        if (!same) report.violations.push(`the follower of "${FILTERS[n]}" has another copy`);
      }
    } finally {
      isOver = true;
      await Promise.all(followers.map((follower) => follower.disconnect()));
      await Promise.all(following);
      await service.stop();
    }
    report.requests = Object.fromEntries(caller.counts);
    report.violations.push(...caller.violations);
    report.kept = await countServiceRecords(env);
    judge(report);
    return report;
  } finally {
    await receiver.close();
    await dir.remove();
  }
}

async function prepare(env: Record<string, string>, hook: string): Promise<TestProject> {
  return withApp(env, async (app) => {
    await migrate(app.db);
    const owner = await buildProject(app);
    await buildCollection(app, owner.project, { name: 'items', indexes: ['n'] });
    await setChanges(app, owner.project._id, 'items', { on: true });
    await buildWebhook(app, owner.project, hook);
    const limits = { mail: 1_000_000_000 };
    await projectStore(app).updateOne({ _id: owner.project._id }, { $set: { plan: 'pro', limits } });
    return owner;
  });
}

/** So often a second, until it is over; what is late is made up for. */
async function each({ over }: SoakCaller, perSecond: number, work: (n: number) => Promise<unknown>): Promise<void> {
  const begun = performance.now();
  for (let n = 0; !over(); n++) {
    const early = begun + (n * 1000) / perSecond - performance.now();
    if (early > 0) await wait(early);
    await work(n);
  }
}

const fields = (random: Random) => ({ n: random.below(40), text: 'text '.repeat(40 + random.below(120)) });

async function insert(caller: SoakCaller, ids: string[], random: Random): Promise<void> {
  const reply = await caller.send('insert', 'POST', '/api/data/items', { body: fields(random) });
  if (reply?.status === 201) ids.push(reply.body._id as string);
}

function update(caller: SoakCaller, id: string, random: Random): Promise<SoakReply> {
  const body = random.chance(0.5) ? { n: random.below(40) } : fields(random);
  // It may have been removed a moment ago.
  return caller.send('update', 'PATCH', `/api/data/items/${id}`, { body, allowed: [200, 404] });
}

/** Removes the oldest for good and stores another. */
async function replace(caller: SoakCaller, ids: string[], random: Random): Promise<void> {
  await insert(caller, ids, random);
  if (ids.length > DOCUMENTS) await caller.send('remove', 'DELETE', `/api/data/items/${ids.shift()}?permanent=true`);
}

function mail(caller: SoakCaller, n: number): Promise<SoakReply> {
  const body = { to: `reader${n}@example.test`, subject: `mail ${n}`, text: 'hello '.repeat(100) };
  return caller.send('mail', 'POST', '/api/mail/send', { body });
}

/** Keeps a follower connected. */
async function follow(follower: StreamFollower, caller: SoakCaller, report: KeptSoakReport): Promise<void> {
  while (!caller.over()) {
    if (!follower.isOpen()) {
      await follower.connect({ url: caller.url() }, { 'x-api-key': caller.keys.secret }).catch(() => undefined);
    }
    report.told += follower.told.length;
    follower.told.length = 0;
    await wait(200);
  }
}

async function isSame(caller: SoakCaller, follower: StreamFollower, filter: string): Promise<boolean> {
  const until = performance.now() + SETTLE_MS;
  const path = `/api/data/items?${filter}&limit=1000`;
  const headers = { 'x-api-key': caller.keys.secret };
  const { data } = (await (await fetch(caller.url() + path, { headers })).json()) as {
    data: { items: { _id: string }[] };
  };
  const list = new Map(data.items.map((item) => [item._id, item]));
  while (!isDeepStrictEqual(new Map(follower.known), list)) {
    if (performance.now() > until) return false;
    if (!follower.isOpen()) await follower.connect({ url: caller.url() }, headers).catch(() => undefined);
    await wait(100);
  }
  return true;
}

/** Notes how large the file is, each minute. */
async function watch(
  minutes: number,
  file: string,
  report: KeptSoakReport,
  tell: (line: string) => void,
): Promise<void> {
  const begun = performance.now();
  for (let minute = 1; minute <= minutes; minute++) {
    await wait(begun + minute * 60_000 - performance.now());
    const megabytes = Math.round(statSync(file).size / 10_000) / 100;
    report.megabytes.push(megabytes);
    tell(`${minute} min: ${megabytes} MB, ${report.delivered} delivered, ${report.told} told`);
  }
}

/** By what the guide says is kept; the server has ended. */
function countServiceRecords(env: Record<string, string>): Promise<Record<string, number>> {
  return withApp(env, async ({ db }) => {
    const kept: Record<string, number> = {};
    for (const { what, stores } of RETAINED_DATA) {
      for (const store of stores) kept[what] = (kept[what] ?? 0) + (await db.measure(store)).documents;
    }
    return Object.fromEntries(Object.entries(kept).filter(([, count]) => count > 0));
  });
}

function judge(report: KeptSoakReport): void {
  const { megabytes, settledAt, minutes } = report;
  const settled = megabytes[settledAt - 1];
  if (settled === undefined) return;
  report.grownPercent = Math.round((Math.max(...megabytes.slice(settledAt - 1)) / settled - 1) * 1000) / 10;
  // A shorter run says what it saw.
  if (minutes > SETTLED_MINUTES && report.grownPercent > MOST_GROWTH_PERCENT) {
    report.violations.push(`the file grew by ${report.grownPercent} % after minute ${settledAt}`);
  }
}
