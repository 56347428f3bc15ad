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
  transport: 'embedded' | 'wire';
  processes: number;
}

export interface ChangesSoakReport {
  writes: number;
  kills: number;
  /** Streams that were opened, and pages that were asked for in between. */
  streams: number;
  pages: number;
  /** Streams that broke off without a word, as they do when their process is killed: the next has another one. */
  cut: number;
  /** Streams that ended with their token. */
  expired: number;
  /** Streams that were not read for a while. */
  paused: number;
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
const MIN_WRITES = 100;
const TOKEN_STEP_MS = 3_000;
/** After the last write. */
const SETTLE_MS = 60_000;

interface Audience {
  collection: 'items' | 'posts';
  /** Null: sees everything. */
  user: string | null;
  headers(): Record<string, string>;
}

/**
 * Random writes to a private collection and to one that everybody reads, by several clients, while processes that serve
 * are killed. Followers with eight filters, by a secret key, as two users and without one, are cut off, do not read,
 * lose their tokens, and go on by a stream or a page at another process. Needs `npm run build`.
 */
export async function soakChanges({ seconds, seed, transport, processes }: ChangesSoak): Promise<ChangesSoakReport> {
  const dir = await openTempDir();
  const engine = transport === 'wire' ? openEngine({ dataDir: join(dir.path, 'wire'), durability: 'relaxed' }) : null;
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
    for (const [name, mode] of [
      ['items', 'private'],
      ['posts', 'public-read'],
    ] as const) {
      await buildCollection(app, owner.project, {
        name,
        mode: 'flexible',
        rls: { mode, ownerField: 'userId' },
        indexes: ['state'],
      });
      await setChanges(app, owner.project._id, name, { on: true });
    }
    const began = Date.now();
    const users = ['ann', 'bob'].map((): Audience => {
      const user = new ObjectId().toHexString();
      // Each is good for a while only, and the last of them to the end.
      const tokens = Array.from({ length: Math.ceil((5 * seconds * 1000 + 180_000) / TOKEN_STEP_MS) }, (_, at) =>
        signAccessToken(app, owner.project, user, (at + 2) * TOKEN_STEP_MS),
      );
      const headers = (): Record<string, string> => {
        const at = Math.min(tokens.length - 1, Math.floor((Date.now() - began) / TOKEN_STEP_MS));
        return { 'x-api-key': owner.publishable, authorization: `Bearer ${tokens[at]!}` };
      };
      return { collection: 'items', user, headers };
    });
    const server: Audience = { collection: 'items', user: null, headers: () => ({ 'x-api-key': owner.secret }) };
    const anybody: Audience = { collection: 'posts', user: null, headers: () => ({ 'x-api-key': owner.publishable }) };
    return { audiences: [server, ...users, anybody], secret: owner.secret };
  });
}

class Run {
  readonly #followers: { filter: string; audience: Audience; follower: StreamFollower }[];
  readonly #ids = { items: [] as string[], posts: [] as string[] };
  readonly #owners = new Map<string, string>();
  readonly #report: ChangesSoakReport = {
    ...{ writes: 0, kills: 0, streams: 0, pages: 0, cut: 0, expired: 0, paused: 0, told: 0 },
    different: [],
    leaked: [],
  };
  readonly #users: readonly string[];
  #isOver = false;

  constructor(
    private readonly url: string,
    private readonly audiences: readonly Audience[],
    private readonly secret: string,
    private readonly random: Random,
  ) {
    this.#users = audiences.flatMap(({ user }) => user ?? []);
    this.#followers = FILTERS.flatMap((filter) =>
      audiences.map((audience) => ({ filter, audience, follower: openStreamFollower(audience.collection, filter) })),
    );
  }

  async finish(seconds: number, children: () => number[]): Promise<ChangesSoakReport> {
    const end = Date.now() + seconds * 1000;
    const latest = end + 4 * seconds * 1000;
    // On a busy machine it takes longer until something has happened.
    const isQuiet = (): boolean => this.#report.kills < 2 || this.#report.writes < MIN_WRITES;
    const going = (): boolean => Date.now() < end || (isQuiet() && Date.now() < latest);
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
    let ends: number | null = null;
    while (!this.#isOver) {
      if (!follower.isOpen()) {
        // It had a stream that ended by itself.
        if (ends !== null && follower.ends.length === ends) this.#report.cut++;
        ends = null;
        if (random.chance(0.3)) {
          if ((await follower.poll({ url: this.url }, audience.headers()).catch(() => 0)) === 200) this.#report.pages++;
        } else {
          const status = await follower.connect({ url: this.url }, audience.headers()).catch(() => 0);
          if (status === 200) {
            this.#report.streams++;
            ends = follower.ends.length;
          }
        }
        until = Date.now() + 500 + random.below(6_000);
      } else if (Date.now() > until) {
        if (random.chance(0.4)) {
          await follower.disconnect();
          ends = null;
        } else if (random.chance(0.5)) {
          follower.pause();
          this.#report.paused++;
        } else {
          follower.resume();
        }
        until = Date.now() + 500 + random.below(2_000);
      }
      await pause(50);
    }
    await follower.disconnect();
  }

  async #write(going: () => boolean, random: Random): Promise<void> {
    while (going()) {
      const owner = random.pick(this.#users);
      const { collection } = random.pick(this.audiences);
      const ids = this.#ids[collection];
      const id = ids.length > 0 ? random.pick(ids) : new ObjectId().toHexString();
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
      const answer = await this.#call(method, `${collection}${path}`, body);
      if (!answer) {
        await pause(20);
        continue;
      }
      this.#report.writes++;
      const made = answer as { _id?: string; data?: { ids?: string[] } };
      for (const each of [...(made._id === undefined ? [] : [made._id]), ...(made.data?.ids ?? [])]) {
        ids.push(each);
        this.#owners.set(each, owner);
      }
      if (ids.length > 200) ids.splice(0, 50);
    }
  }

  async #call(method: string, path: string, body?: unknown): Promise<unknown> {
    try {
      const response = await fetch(`${this.url}/api/data/${path}`, {
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
      if (processes.length < 2 || !going() || !(await this.#call('GET', 'items?limit=1'))) continue;
      try {
        process.kill(random.pick(processes), 'SIGKILL');
        this.#report.kills++;
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  /**
   * Waits until every copy is what a list shows; notes what is not in the end. A list is asked for each time: what a
   * killed process had asked the database for may come after its client knows that it is gone.
   */
  async #compare(): Promise<void> {
    const end = Date.now() + SETTLE_MS;
    for (const { filter, audience, follower } of this.#followers) {
      for (;;) {
        const list = await this.#list(filter, audience);
        if (isDeepStrictEqual(follower.known, list)) break;
        if (Date.now() > end) {
          const who = `${audience.collection} ${filter} as ${audience.user}`;
          const ids = new Set([...follower.known.keys(), ...list.keys()]);
          for (const id of ids) {
            const [known, listed] = [follower.known.get(id), list.get(id)].map((document) => JSON.stringify(document));
            if (known !== listed) this.#report.different.push(`${who}: has ${known}, is ${listed}`);
          }
          break;
        }
        follower.resume();
        await pause(100);
      }
    }
  }

  async #list(filter: string, { collection, headers }: Audience): Promise<Map<string, Record<string, unknown>>> {
    const all = new Map<string, Record<string, unknown>>();
    for (let cursor: string | null = 'start'; cursor !== null;) {
      const path = `/api/data/${collection}?${filter}&limit=1000&cursor=${encodeURIComponent(cursor)}`;
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
      this.#report.expired += follower.ends.filter((code) => code === 'TOKEN_EXPIRED').length;
      for (const { id, type, document } of follower.told) {
        // Whose a document was that a process stored before it was killed, only the document tells.
        const owner = (document?.userId as string | undefined) ?? this.#owners.get(id);
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
