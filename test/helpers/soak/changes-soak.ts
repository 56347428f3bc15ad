import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import { openEngine } from '../../../src/engine/index.js';
import { signAccessToken } from '../../../src/features/access/sign-access-token.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { migrate } from '../../../src/migrations/migrate.js';
import { buildCollection, buildProject } from '../build-project.js';
import { findFreePort } from '../listen.js';
import { childrenOf } from '../process-tree.js';
import { openRandom, type Random } from '../random.js';
import { startService } from '../run-binary.js';
import { openStreamFollower, type StreamFollower } from '../stream-follower.js';
import { openTempDir } from '../temp-dir.js';
import { withApp } from '../with-app.js';

export interface ChangesSoak {
  seconds: number;
  seed: number;
  door: 'embedded' | 'wire';
  processes: number;
}

export interface ChangesSoakReport {
  writes: number;
  kills: number;
  streams: number;
  told: number;
  /** Followers whose copy is not what a list shows, in words. */
  different: string[];
  /** Documents that somebody was told of who may not see them, in words. */
  leaked: string[];
}

const FILTERS = [
  '',
  'state=open',
  'state_in=open,late',
  'n_gte=10&n_lt=30',
  'state_ne=done&n_lt=25',
  'tag_exists=true',
  'meta.level=3',
  'fields=n&n_lt=20',
];
const STATES = ['open', 'late', 'done'];
const WRITERS = 3;
const TOKEN_STEP_MS = 3_000;
/** After the last write. */
const SETTLE_MS = 60_000;

interface Audience {
  user: string | null;
  headers(): Record<string, string>;
}

/**
 * Random writes to a private collection by several clients, while processes that serve are killed, and followers with
 * eight filters for three audiences are cut off, do not read and lose their tokens. Needs `npm run build`.
 */
export async function soakChanges({ seconds, seed, door, processes }: ChangesSoak): Promise<ChangesSoakReport> {
  const dir = await openTempDir();
  const engine = door === 'wire' ? openEngine({ dataDir: join(dir.path, 'wire'), durability: 'relaxed' }) : null;
  const mongodb: Record<string, string> = engine ? { MONGODB_URI: (await engine.listen('127.0.0.1:0')).uri } : {};
  const env = {
    BSVC_DATA_DIR: dir.path,
    BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789',
    BSVC_LOG_LEVEL: 'error',
    BSVC_DURABILITY: 'relaxed',
    ...mongodb,
  };
  try {
    const { audiences, secret } = await prepare(env, seconds);
    // Any free port would be another one after all processes were killed at once.
    const port = String(await findFreePort());
    const service = await startService(['serve', '--port', port, '--processes', String(processes)], env);
    try {
      const run = new Run(service.ready.url, audiences, secret, openRandom(seed));
      return await run.finish(seconds, () => childrenOf(service.process.pid!));
    } finally {
      await service.stop('SIGTERM');
    }
  } finally {
    await engine?.close();
    await dir.remove();
  }
}

async function prepare(
  env: Record<string, string>,
  seconds: number,
): Promise<{ audiences: Audience[]; secret: string }> {
  return withApp(env, async (app) => {
    await migrate(app.db);
    const owner = await buildProject(app);
    await buildCollection(app, owner.project, {
      name: 'items',
      mode: 'flexible',
      rls: { mode: 'private', ownerField: 'userId' },
      indexes: ['state'],
    });
    await setChanges(app, owner.project._id, 'items', { on: true });
    const began = Date.now();
    const users = ['ann', 'bob'].map((): Audience => {
      const user = new ObjectId().toHexString();
      // Each is good for a while only, and the last of them to the end.
      const tokens = Array.from({ length: Math.ceil((seconds * 1000 + 180_000) / TOKEN_STEP_MS) }, (_, at) =>
        signAccessToken(app, owner.project, user, (at + 2) * TOKEN_STEP_MS),
      );
      const headers = (): Record<string, string> => {
        const at = Math.min(tokens.length - 1, Math.floor((Date.now() - began) / TOKEN_STEP_MS));
        return { 'x-api-key': owner.publishable, authorization: `Bearer ${tokens[at]!}` };
      };
      return { user, headers };
    });
    const server: Audience = { user: null, headers: () => ({ 'x-api-key': owner.secret }) };
    return { audiences: [server, ...users], secret: owner.secret };
  });
}

class Run {
  readonly #followers: { filter: string; audience: Audience; follower: StreamFollower }[];
  readonly #ids: string[] = [];
  readonly #owners = new Map<string, string>();
  readonly #report: ChangesSoakReport = { writes: 0, kills: 0, streams: 0, told: 0, different: [], leaked: [] };
  #isOver = false;

  constructor(
    private readonly url: string,
    private readonly audiences: readonly Audience[],
    private readonly secret: string,
    private readonly random: Random,
  ) {
    this.#followers = FILTERS.flatMap((filter) =>
      audiences.map((audience) => ({ filter, audience, follower: openStreamFollower('items', filter) })),
    );
  }

  async finish(seconds: number, children: () => number[]): Promise<ChangesSoakReport> {
    const end = Date.now() + seconds * 1000;
    const going = (): boolean => Date.now() < end;
    const following = this.#followers.map((entry, at) => this.#follow(entry, this.random.fork(`follower ${at}`)));
    await Promise.all([
      ...Array.from({ length: WRITERS }, (_, at) => this.#write(going, this.random.fork(`writer ${at}`))),
      this.#kill(going, children, this.random.fork('kills')),
    ]);
    await this.#compare();
    this.#isOver = true;
    await Promise.all(following);
    this.#look();
    return this.#report;
  }

  /** Keeps a follower connected, more or less. */
  async #follow({ audience, follower }: { audience: Audience; follower: StreamFollower }, random: Random) {
    let until = 0;
    while (!this.#isOver) {
      if (!follower.isOpen()) {
        const status = await follower.connect({ url: this.url }, audience.headers()).catch(() => 0);
        if (status === 200) this.#report.streams++;
        until = Date.now() + 500 + random.below(6_000);
      } else if (Date.now() > until) {
        if (random.chance(0.4)) await follower.disconnect();
        else if (random.chance(0.5)) follower.pause();
        else follower.resume();
        until = Date.now() + 500 + random.below(2_000);
      }
      await pause(50);
    }
    await follower.disconnect();
  }

  async #write(going: () => boolean, random: Random): Promise<void> {
    while (going()) {
      const owner = random.pick(this.audiences.slice(1)).user!;
      const id = this.#ids.length > 0 ? random.pick(this.#ids) : new ObjectId().toHexString();
      const fields = {
        state: random.pick(STATES),
        n: random.below(40),
        meta: { level: random.below(5) },
        ...(random.chance(0.5) && { tag: 'x' }),
        ...(random.chance(0.2) && { text: 'long '.repeat(random.below(300)) }),
      };
      const [method, path, body] = random.pick<[string, string, unknown?]>([
        ['POST', '', { ...fields, userId: owner }],
        ['POST', '/bulk', [1, 2, 3].map((n) => ({ ...fields, n, userId: owner }))],
        ['PATCH', `/${id}`, fields],
        ['PATCH', `/${id}`, { n: random.below(40) }],
        ['DELETE', `/${id}`],
        ['PATCH', `/${id}/recover`],
        ['DELETE', `/${id}?permanent=true`],
      ]);
      const answer = await this.#call(method, path, body);
      if (!answer) {
        await pause(20);
        continue;
      }
      this.#report.writes++;
      const made = answer as { _id?: string; data?: { ids?: string[] } };
      for (const each of [...(made._id === undefined ? [] : [made._id]), ...(made.data?.ids ?? [])]) {
        this.#ids.push(each);
        this.#owners.set(each, owner);
      }
      if (this.#ids.length > 200) this.#ids.splice(0, 50);
    }
  }

  async #call(method: string, path: string, body?: unknown): Promise<unknown> {
    try {
      const response = await fetch(`${this.url}/api/data/items${path}`, {
        method,
        headers: { 'x-api-key': this.secret, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return await response.json();
    } catch {
      // Its process was killed.
      return null;
    }
  }

  async #kill(going: () => boolean, children: () => number[], random: Random): Promise<void> {
    while (going()) {
      await pause(1_500 + random.below(3_000));
      const processes = children();
      // One at least goes on: the others would only wait for it.
      if (processes.length < 2 || !going() || !(await this.#call('GET', '?limit=1'))) continue;
      try {
        process.kill(random.pick(processes), 'SIGKILL');
        this.#report.kills++;
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  /** Waits until every copy is what a list shows; notes those that are not in the end. */
  async #compare(): Promise<void> {
    const end = Date.now() + SETTLE_MS;
    for (const { filter, audience, follower } of this.#followers) {
      const list = await this.#list(filter, audience);
      while (!isDeepStrictEqual(follower.known, list)) {
        if (Date.now() > end) {
          this.#report.different.push(`${filter} as ${audience.user}: ${follower.known.size} of ${list.size}`);
          break;
        }
        follower.resume();
        await pause(100);
      }
    }
  }

  async #list(filter: string, { headers }: Audience): Promise<Map<string, Record<string, unknown>>> {
    const all = new Map<string, Record<string, unknown>>();
    for (let cursor: string | null = 'start'; cursor !== null;) {
      const path = `/api/data/items?${filter}&limit=1000&cursor=${encodeURIComponent(cursor)}`;
      const { data } = (await this.#ask(path, headers)) as {
        data: { items: { _id: string }[]; nextCursor: string | null };
      };
      for (const item of data.items) all.set(item._id, item);
      cursor = data.nextCursor;
    }
    return all;
  }

  /** Again and again while nobody serves. */
  async #ask(path: string, headers: Audience['headers']): Promise<unknown> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await (await fetch(this.url + path, { headers: headers() })).json();
      } catch (error) {
        if (attempt === 100) throw error;
        await pause(300);
      }
    }
  }

  #look(): void {
    for (const { filter, audience, follower } of this.#followers) {
      this.#report.told += follower.told.length;
      if (follower.restarts > 0) this.#report.different.push(`${filter}: started over ${follower.restarts} times`);
      for (const { id, type } of follower.told) {
        const owner = this.#owners.get(id);
        if (audience.user !== null && owner !== undefined && owner !== audience.user) {
          this.#report.leaked.push(`${type} ${id} of ${owner} to ${audience.user}`);
        }
      }
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
