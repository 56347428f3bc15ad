import { EventEmitter, once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { loadConfig, migrate, openApp, openLogger } from '../world/app.js';
import { completeRules, setRules } from '../world/collections.js';
import { eventually } from '../helpers/eventually.js';
import { findFreePort } from '../helpers/listen.js';
import { BOARDS, buildMemberWorld, MEMBERS_READ, type MemberWorld } from '../helpers/member-world.js';
import { childrenOf } from '../helpers/process-tree.js';
import { openRandom, type Random } from '../helpers/random.js';
import { startService } from '../helpers/run-binary.js';
import { openSeed } from '../helpers/seed.js';
import { openStreamFollower, type StreamFollower } from '../helpers/stream-follower.js';
import { openTempDir } from '../helpers/temp-dir.js';

const SEED = openSeed('sets while processes are killed');
/** In the first half of them the rules stay: nobody has to start over. */
const ROUNDS = 4;
const CHANGES = 30;
const FOLLOWERS_EACH = 2;
/** Answers that a follower may get; 0 where its process was killed. */
const EXPECTED = [0, 200, 503];
/** Where rules change: a cursor ends by them, and they may ask for a user. */
const BY_RULES = [401, 410];

const VIEWERS_READ = 'doc.board in members[user = user.id and role = "viewer"].board';
const ROLES = ['viewer', 'editor', 'asked'];
/** Nobody is ever a member of it, and its cards are never public. */
const HIDDEN = 'hidden';

interface Audience {
  userId: string | null;
  headers: Record<string, string>;
  follower: StreamFollower;
}

interface Run {
  url: string;
  /** Emits `step` with each change, and each look at what followers have: by these they pace themselves. */
  steps: EventEmitter;
  isOver: boolean;
  rules: number;
  /** Answers that nobody should have got. */
  wrong: string[];
}

/** Keeps a follower going by streams and pages, each at another process. */
async function follow(run: Run, { headers, follower }: Audience, random: Random): Promise<void> {
  while (!run.isOver) {
    if (follower.isOpen()) {
      await pass(run, random.below(6));
      if (random.chance(0.3)) await follower.disconnect();
      continue;
    }
    const page = random.chance(0.5);
    const status = await (page ? follower.poll(run, headers) : follower.connect(run, headers)).catch(() => 0);
    const isRight = EXPECTED.includes(status) || (run.rules > 0 && BY_RULES.includes(status));
    if (!isRight) run.wrong.push(`${page ? 'page' : 'stream'}: ${status}`);
    if (page || status !== 200) await pass(run, 1 + random.below(2));
  }
}

/** Changes by the API, of a process that may be killed before it answers or after. */
async function send(url: string, world: MemberWorld, random: Random, known: string[]): Promise<void> {
  const card = {
    board: random.chance(0.2) ? HIDDEN : random.pick(BOARDS),
    visibility: 'team',
    n: random.below(1_000_000),
  };
  const member = { board: random.pick(BOARDS), user: random.pick(world.userIds), role: random.pick(ROLES) };
  const collection = random.pick(['cards', 'members']);
  const id = known.length > 0 ? random.pick(known) : null;
  const [method, path, body] = random.pick<[string, string, unknown?]>([
    ['POST', collection, collection === 'cards' ? card : member],
    ['POST', 'cards/bulk', [card, { ...card, n: 1 }]],
    ...(id === null
      ? []
      : ([
          ['PATCH', id, id.startsWith('cards') ? card : member],
          ['DELETE', id],
        ] as const)),
  ] as [string, string, unknown?][]);
  try {
    const answer = await fetch(`${url}/api/data/${path}`, {
      method,
      headers: { 'x-api-key': world.owner.secret, 'content-type': 'application/json', connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const made = (await answer.json()) as { _id?: string };
    if (made._id !== undefined && method === 'POST') known.push(`${path}/${made._id}`);
  } catch {
    // Its process was killed.
  }
}

/** Resolves after so many steps of the run, or when it is over. */
async function pass(run: Run, steps: number): Promise<void> {
  for (let n = 0; n < steps && !run.isOver; n++) await once(run.steps, 'step');
}

/** rules.md 13, property 5. */
it('enter and leave are told exactly while members and rules change and serving processes are killed', async () => {
  const dir = await openTempDir();
  const env = {
    BSVC_DATA_DIR: dir.path,
    BSVC_SECRET_KEY: 'a-master-key-for-tests-only-0123456789',
    BSVC_LOG_LEVEL: 'warn',
    BSVC_RATE_LIMIT: 'off',
    BSVC_DURABILITY: 'relaxed',
  };
  const log = openLogger({ level: 'error', format: 'json' });
  const app = await openApp(loadConfig([{ source: 'test', values: env }]).config, log);
  await migrate(app.db);
  const random = openRandom(SEED);
  const world = await buildMemberWorld({ app });
  const service = await startService(['serve', '--port', String(await findFreePort()), '--processes', '2'], env);
  const { url } = service.ready;
  const run: Run = { url, steps: new EventEmitter().setMaxListeners(0), isOver: false, rules: 0, wrong: [] };
  let kills = 0;
  const all = [null, ...world.userIds].flatMap((userId): Audience[] =>
    Array.from({ length: FOLLOWERS_EACH }, () => ({
      userId,
      headers: world.headers(userId),
      follower: openStreamFollower('cards', ''),
    })),
  );
  const following = all.map((each, at) => follow(run, each, random.fork(`follower ${at}`)));
  const settled = async (): Promise<void> => {
    for (const { userId, follower } of all) {
      await eventually(`${userId} has what a list shows`, async () => {
        run.steps.emit('step');
        // A last change of a killed process may be seen a second after its end, when another notes its commit.
        const expected = await world.expected(userId);
        return isDeepStrictEqual(new Map([...follower.known].map(([id, { n }]) => [id, n])), expected);
      });
    }
  };
  const countRestarts = (): number => all.reduce((sum, { follower }) => sum + follower.restarts, 0);
  const changeRules = async (read: string): Promise<void> => {
    run.rules++;
    const before = countRestarts();
    await setRules(app, world.owner.project._id, 'cards', completeRules({ read }), { agreed: true });
    // Rules that are changed back before anybody has asked change nothing.
    await eventually('a follower begins again', () => {
      run.steps.emit('step');
      return countRestarts() > before;
    });
  };
  try {
    const known: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const killedAt = random.below(CHANGES);
      const ruledAt = round < ROUNDS / 2 ? -1 : random.below(CHANGES);
      for (let n = 0; n < CHANGES; n++) {
        if (n === killedAt) {
          process.kill(random.pick(childrenOf(service.process.pid!)), 'SIGKILL');
          kills++;
        }
        await Promise.all([
          world.change(random),
          send(url, world, random, known),
          ...(n === ruledAt ? [changeRules(round % 2 === 0 ? VIEWERS_READ : MEMBERS_READ)] : []),
        ]);
        run.steps.emit('step');
      }
      if (round !== ROUNDS / 2 - 1) continue;
      await settled();
      expect(all.map(({ follower }) => follower.restarts)).toEqual(all.map(() => 0));
    }
    await settled();
    const told = all.flatMap(({ follower }) => follower.told);
    expect(told.filter(({ document }) => document?.board === HIDDEN)).toEqual([]);
    expect(run.wrong, service.stderr()).toEqual([]);
    const restarts = countRestarts();
    console.log(JSON.stringify({ kills, rules: run.rules, told: told.length, restarts }));
    for (const reached of [kills, run.rules, restarts]) expect(reached).toBeGreaterThan(1);
  } finally {
    run.isOver = true;
    run.steps.emit('step');
    await Promise.all(following);
    for (const { follower } of all) await follower.disconnect();
    await service.stop();
    await app.close();
    await dir.remove();
  }
});
