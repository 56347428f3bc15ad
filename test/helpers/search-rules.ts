import { expect } from 'vitest';
import { userCaller } from '../../src/features/access/operator-access.js';
import { admitsDocument } from '../../src/features/access/rules/explain-rule.js';
import { requireCollection } from '../../src/features/collections/collection-store.js';
import { storedDocuments } from './build-project.js';
import { openRandom, type Random } from './random.js';
import { openStreamFollower, type StreamFollower } from './stream-follower.js';
import type { TestApp } from './open-test-app.js';
import {
  buildRuledWorld,
  generateFields,
  generateJoin,
  type Person,
  type RuledWorld,
  type Values,
} from './ruled-world.js';

/** How often a search came to what it is for; `cases` are rules × callers × stores, each asked in all ways. */
export const REACHED = {
  cases: 0,
  sets: 0,
  joins: 0,
  refusedBefore: 0,
  refusedAfter: 0,
  admitted: 0,
  entered: 0,
  left: 0,
  foreignTrash: 0,
  takenBack: 0,
  startedOver: 0,
};

/** On a MongoDB a set that a read asks about may be so old (rules.md 5). */
export const SET_AGE_MS = 1_000;

/** How large a world is, and how often it is looked at with how many writes in between. */
interface World {
  documents: number;
  rounds: number;
  writes: number;
}

/**
 * A world under random rules: what anybody reads or writes is what an independent reading of the rules says. `pass` has
 * the application's clock go on.
 */
export async function searchRules(
  test: TestApp,
  seed: number,
  pass: (ms: number) => void,
  { documents, rounds, writes }: World = { documents: 12, rounds: 3, writes: 12 },
): Promise<void> {
  const random = openRandom(seed);
  const world = await buildRuledWorld(test, random, documents);
  REACHED.sets += Object.values(world.rules).filter(({ text }) => text.includes('joins[')).length;
  const told = world.people.map(() => new Map<string, unknown>());
  const cursors: (string | null)[] = world.people.map(() => null);
  const streams = world.people.map(() => openStreamFollower('things', ''));
  for (let round = 0; round < rounds; round++) {
    for (const [at, person] of world.people.entries()) {
      pass(SET_AGE_MS);
      await expectReads(world, person);
      await expectTrash(world, person);
      cursors[at] = await followTo(world, person, { cursor: cursors[at]!, told: told[at]! });
      await expectExplained(test, world, person);
      await expectStreamed(test, world, person, streams[at]!);
      REACHED.cases++;
    }
    for (let n = 0; n < writes; n++) await write(world, random);
  }
  for (const stream of streams) await stream.disconnect();
}

/** The explanation of each document says whether it is readable. */
async function expectExplained({ app }: TestApp, world: RuledWorld, { user }: Person): Promise<void> {
  const { project } = world.owner;
  const things = await requireCollection(app, project._id, 'things');
  const caller = userCaller(project, user === null ? null : String(user.id));
  const seen = readable(world, { user, headers: {} });
  for (const document of await storedDocuments(app, things).find({ isDeleted: false }).toArray()) {
    const admits = await admitsDocument(app, things, caller, 'read', document);
    expect(admits, `${world.rules.read.text} for ${JSON.stringify([user, document])}`).toBe(
      seen.includes(document._id.toHexString()),
    );
  }
}

/** A stream that stays open comes to what the list shows. */
async function expectStreamed(test: TestApp, world: RuledWorld, person: Person, stream: StreamFollower): Promise<void> {
  if (!stream.isOpen()) {
    const status = await stream.connect(test, person.headers);
    if (status !== 200) {
      expect([401, 403], world.rules.read.text).toContain(status);
      return expect(readable(world, person)).toEqual([]);
    }
  }
  const what = `stream of ${world.rules.read.text} for ${JSON.stringify(person.user)}`;
  await expect.poll(() => [...stream.known.keys()].sort(), { message: what }).toEqual(readable(world, person).sort());
  expect(stream.ends).toEqual([]);
}

const readable = ({ rules, documents }: RuledWorld, { user }: Person): string[] =>
  [...documents].filter(([, document]) => rules.read.admits(user, document)).map(([id]) => id);

/** True where nobody unknown could be shown anything: the answer is then 401, of a closed collection 403. */
function refusalOf(
  { rules: { read } }: RuledWorld,
  { user }: Person,
  reply: { status: number; body: { code?: string } },
) {
  if (read.text === 'nobody') return [reply.status, reply.body.code].join() === '403,READ_BLOCKED';
  return user === null && read.asksCaller && [reply.status, reply.body.code].join() === '401,AUTH_REQUIRED';
}

async function expectReads(world: RuledWorld, person: Person): Promise<void> {
  const seen = readable(world, person).sort();
  const what = `${world.rules.read.text} for ${JSON.stringify(person.user)}`;
  const list = await world.send(person, 'get', 'things?limit=1000');
  if (list.status !== 200) {
    expect(refusalOf(world, person, list), `${what}: ${list.text}`).toBe(true);
    expect(seen, what).toEqual([]);
  } else {
    expect(idsOf(list.body), what).toEqual(seen);
  }
  const referred = seen.filter((id) => world.referred.includes(id));
  const isRefused = list.status !== 200;
  const replies = [list];
  const also = async (path: string, pipeline?: object[]): Promise<{ body: { data?: unknown } } | null> => {
    const reply = await world.send(person, pipeline ? 'post' : 'get', path, pipeline && { pipeline });
    replies.push(reply);
    expect(reply.status, `${path} ${what}: ${reply.text}`).toBe(isRefused ? list.status : 200);
    return isRefused ? null : reply;
  };
  const count = await also('things?count=true');
  if (count) expect((count.body.data as { count: number }).count, what).toBe(seen.length);
  const all = await also('things/aggregate', [{ $match: {} }]);
  if (all) expect(idsOf(all.body), what).toEqual(seen);
  const joined = await also('refs/aggregate', [
    { $lookup: { from: 'things', localField: 'to', foreignField: '_id', as: 'found' } },
  ]);
  if (joined) expect(idsIn((joined.body.data as { found: unknown }[])[0]!.found), what).toEqual(referred);
  const united = await also('refs/aggregate', [{ $limit: 1 }, { $project: { to: 0 } }, { $unionWith: 'things' }]);
  if (united) expect(idsIn((united.body.data as Values[]).slice(1)), what).toEqual(seen);
  const populated = await also('refs?populate=to');
  if (populated) {
    const [{ to }] = (populated.body.data as { items: [{ to: unknown[] }] }).items;
    expect(idsIn(to.filter((item) => typeof item === 'object')), what).toEqual(referred);
  }
  for (const [id, document] of world.documents) {
    const reply = await world.send(person, 'get', `things/${id}`);
    replies.push(reply);
    if (isRefused) expect(reply.status).toBe(list.status);
    else expect(reply.status, `${what} ${JSON.stringify(document)}`).toBe(seen.includes(id) ? 200 : 404);
  }
  const foreign = [...world.documents].filter(([id]) => !seen.includes(id)).map(([, { text }]) => text as string);
  for (const { text } of replies)
    expect(
      foreign.filter((secret) => text.includes(secret)),
      what,
    ).toEqual([]);
}

/** The trash is shown to those who may read and delete what is in it. */
async function expectTrash(world: RuledWorld, person: Person): Promise<void> {
  const { rules, trashed } = world;
  const isShown = (document: Values): boolean =>
    rules.read.admits(person.user, document) && rules.delete.admits(person.user, document);
  const shown = [...trashed].filter(([, document]) => isShown(document)).map(([id]) => id);
  const seen = [...readable(world, person), ...shown].sort();
  REACHED.foreignTrash += trashed.size - shown.length;
  const what = `trash: ${rules.read.text} and ${rules.delete.text} for ${JSON.stringify(person.user)}`;
  const list = await world.send(person, 'get', 'things?limit=1000&include_deleted=true');
  if (list.status !== 200) {
    expect(refusalOf(world, person, list), `${what}: ${list.text}`).toBe(true);
    return;
  }
  expect(idsOf(list.body), what).toEqual(seen);
  const count = await world.send(person, 'get', 'things?count=true&include_deleted=true');
  expect(count.body.data, what).toEqual({ count: seen.length });
  const all = await world.send(person, 'post', 'things/aggregate?include_deleted=true', { pipeline: [{ $match: {} }] });
  expect(idsOf(all.body), what).toEqual(seen);
  for (const id of trashed.keys()) {
    const { status } = await world.send(person, 'get', `things/${id}?include_deleted=true`);
    expect(status, what).toBe(shown.includes(id) ? 200 : 404);
    expect((await world.send(person, 'get', `things/${id}`)).status, what).toBe(404);
  }
}

const idsIn = (items: unknown): string[] => (items as { _id: string }[]).map(({ _id }) => _id).sort();
const idsOf = ({ data }: { data?: unknown }): string[] =>
  idsIn(Array.isArray(data) ? data : (data as { items: unknown }).items);

/** Follows the changes to their end: what was told comes to what the list shows. */
async function followTo(
  world: RuledWorld,
  person: Person,
  { cursor, told }: { cursor: string | null; told: Map<string, unknown> },
): Promise<string | null> {
  let since = cursor;
  for (;;) {
    const path = `things/changes${since === null ? '' : `?since=${encodeURIComponent(since)}`}`;
    const { status, body, text } = await world.send(person, 'get', path);
    if (status === 410 && since !== null) {
      REACHED.startedOver++;
      told.clear();
      since = null;
      continue;
    }
    if (status !== 200) {
      expect(refusalOf(world, person, { status, body }), text).toBe(true);
      return null;
    }
    const page = body.data as { items: { id: string; document?: unknown }[]; cursor: string; more: boolean };
    for (const { id, document } of page.items) {
      if (document) told.set(id, document);
      else told.delete(id);
    }
    since = page.cursor;
    if (!page.more) break;
  }
  expect([...told.keys()].sort(), world.rules.read.text).toEqual(readable(world, person).sort());
  return since;
}

/** A membership begins, ends or becomes another one, by the project's server. */
async function changeJoin(world: RuledWorld, random: Random): Promise<void> {
  const { joins, server, userIds } = world;
  const shown = (): Set<string>[] => world.people.map((person) => new Set(readable(world, person)));
  const before = shown();
  const fields = generateJoin(random, userIds);
  const id = joins.size > 0 && random.chance(0.6) ? random.pick([...joins.keys()]) : null;
  if (id === null) {
    const { body } = await world.send(server, 'post', 'joins', fields);
    joins.set(body._id!, fields);
  } else if (random.chance(0.5)) {
    await world.send(server, 'delete', `joins/${id}${random.chance(0.5) ? '?permanent=true' : ''}`);
    joins.delete(id);
  } else {
    const cleared = Object.fromEntries(Object.keys(joins.get(id)!).map((name) => [name, null]));
    const { status, text } = await world.send(server, 'patch', `joins/${id}`, { ...cleared, ...fields });
    expect(status, text).toBe(200);
    joins.set(id, fields);
  }
  REACHED.joins++;
  for (const [at, now] of shown().entries()) {
    REACHED.entered += [...now].filter((each) => !before[at]!.has(each)).length;
    REACHED.left += [...before[at]!].filter((each) => !now.has(each)).length;
  }
}

async function write(world: RuledWorld, random: Random): Promise<void> {
  if (random.chance(0.25)) return changeJoin(world, random);
  const person = random.pick(world.people);
  const kind = random.below(4);
  if (world.trashed.size > 0 && random.chance(0.2)) await takeBack(world, random, person);
  else if (kind === 0) await create(world, random, person);
  else if (kind === 1 && world.documents.size > 4) await remove(world, random, person);
  else await update(world, random, person);
}

async function create(world: RuledWorld, random: Random, person: Person): Promise<void> {
  const { rules, documents } = world;
  const fields = { ...generateFields(random, world.userIds), text: `secret-${random.below(1e9)}-` };
  const admitted = rules.create.admits(person.user, fields);
  const bulk = random.chance(0.3);
  const { status, body, text } = await world.send(
    person,
    'post',
    bulk ? 'things/bulk' : 'things',
    bulk ? [fields] : fields,
  );
  const what = `create ${rules.create.text} by ${JSON.stringify(person.user)} of ${JSON.stringify(fields)}: ${text}`;
  expect(status, what).toBe(
    admitted ? 201 : person.user === null && status === 401 && rules.create.asksCaller ? 401 : 403,
  );
  if (!admitted) return;
  const id = bulk ? (body.data as { ids: string[] }).ids[0]! : body._id!;
  documents.set(id, fields);
}

async function update(world: RuledWorld, random: Random, person: Person): Promise<void> {
  const { rules, documents } = world;
  // Mostly of what the person may change: of others nothing is learnt of what comes after.
  const mine = readable(world, person).filter((each) => rules.update.admits(person.user, documents.get(each)!));
  const id = random.pick(mine.length > 0 && random.chance(0.8) ? mine : [...documents.keys()]);
  const before = documents.get(id)!;
  const given = generateFields(random, world.userIds);
  const names = Object.keys(given).filter(() => random.chance(0.5));
  const change: Values = Object.fromEntries(names.map((name) => [name, random.chance(0.2) ? null : given[name]]));
  if (names.length === 0) change.colour = null;
  const after: Values = { ...before, ...change };
  for (const name of Object.keys(change)) if (change[name] === null) delete after[name];
  const reply = await world.send(person, 'patch', `things/${id}`, change);
  const admits = rules.update.admits;
  const [isBefore, isAfter] = [admits(person.user, before), admits(person.user, after)];
  const admitted = isBefore && isAfter;
  if (rules.read.admits(person.user, before)) {
    REACHED[admitted ? 'admitted' : isBefore ? 'refusedAfter' : 'refusedBefore']++;
  }
  expectVerdict(
    world,
    person,
    { before, admitted },
    reply,
    `${rules.update.text} ${JSON.stringify({ before, change })}`,
  );
  if (admitted && rules.read.admits(person.user, before)) documents.set(id, after);
}

async function remove(world: RuledWorld, random: Random, person: Person): Promise<void> {
  const { rules, documents } = world;
  const id = random.pick([...documents.keys()]);
  const before = documents.get(id)!;
  const isPermanent = random.chance(0.3);
  if (random.chance(0.3)) {
    await world.send(world.server, 'delete', `things/${id}`);
    documents.delete(id);
    world.trashed.set(id, before);
    return;
  }
  const reply = await world.send(person, 'delete', `things/${id}${isPermanent ? '?permanent=true' : ''}`);
  const admitted = rules.delete.admits(person.user, before);
  expectVerdict(world, person, { before, admitted }, reply, rules.delete.text);
  if (!admitted || !rules.read.admits(person.user, before)) return;
  documents.delete(id);
  if (!isPermanent) world.trashed.set(id, before);
}

/** What is taken back is changed; of the trash only those know who see it. */
async function takeBack(world: RuledWorld, random: Random, person: Person): Promise<void> {
  const { rules, documents, trashed } = world;
  const id = random.pick([...trashed.keys()]);
  const document = trashed.get(id)!;
  const { status, text } = await world.send(person, 'patch', `things/${id}/recover`, {});
  const [reads, updates, deletes] = (['read', 'update', 'delete'] as const).map((name) =>
    rules[name].admits(person.user, document),
  );
  const expected = !reads ? 404 : updates ? 200 : deletes ? 403 : 404;
  const what = `taken back by ${JSON.stringify(person.user)}, ${JSON.stringify(rules)}: ${text}`;
  expect(person.user === null && expected !== 200 ? [expected, 401] : [expected], what).toContain(status);
  if (status !== 200) return;
  REACHED.takenBack++;
  trashed.delete(id);
  documents.set(id, document);
}

function expectVerdict(
  { rules }: RuledWorld,
  { user }: Person,
  { before, admitted }: { before: Values; admitted: boolean },
  { status, text }: { status: number; text: string },
  rule: string,
): void {
  const what = `${rule} by ${JSON.stringify(user)}, read ${rules.read.text}: ${text}`;
  const isReadable = rules.read.admits(user, before);
  const expected = isReadable ? (admitted ? 200 : 403) : 404;
  // Somebody unknown is asked to sign in where no document whatever could be written.
  const allowed = user === null && expected !== 200 ? [expected, 401] : [expected];
  expect(allowed, what).toContain(status);
}
