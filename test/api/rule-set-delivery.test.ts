import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, openApp, openLogger } from '../world/app.js';
import { type Collection, documentsName } from '../world/collections.js';
import { insertDocumentRecord, removeDocumentRecord } from '../world/stored.js';
import { openStreamClient, type StreamClient } from '../helpers/event-stream.js';
import { buildMemberWorld, newRecord, type MemberWorld } from '../helpers/member-world.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

/** Longer than any test: whoever waits so long is woken, or never goes on. */
const NEVER_MS = 2 ** 30;

let test: TestApp;
/** Another process of the same store, which tells this one of nothing. */
let other: App;
let world: MemberWorld;
let streams: { member: StreamClient; bystander: StreamClient };

/** Turns in which the followers of cards have looked what is new, and how many more there may be. */
const turns = { begun: 0, left: Infinity };
let release: () => void = () => undefined;
/** Followers look only when they are told to. */
let isPatient = false;

beforeAll(async () => {
  test = await openTestApp();
  const { app } = test;
  world = await buildMemberWorld(test);
  other = await openApp(app.config, openLogger({ level: 'error', format: 'json' }));
  const logs = app.db.changeLogs!;
  const read = logs.read.bind(logs);
  logs.read = async (name, search) => {
    // What a follower reads for itself alone asks for nothing earlier.
    if (name === documentsName(world.cards) && search.earlierOf !== undefined) {
      if (turns.left === 0) await new Promise<void>((resolve) => (release = resolve));
      turns.begun++;
      turns.left--;
    }
    return read(name, search);
  };
  const wait = app.hints.wait.bind(app.hints);
  app.hints.wait = (topic, ms, signal) => wait(topic, isPatient ? NEVER_MS : ms, signal);
  for (const board of ['b0', 'b1', 'b1', 'b2']) await insert(other, world.cards, { board, visibility: 'team', n: 1 });
  const [member, bystander] = await Promise.all(world.userIds.slice(0, 2).map((user) => follow(user)));
  streams = { member: member!, bystander: bystander! };
});
afterAll(async () => {
  for (const stream of Object.values(streams)) stream.close();
  await other.close();
  await test.close();
});

async function follow(userId: string): Promise<StreamClient> {
  const path = '/api/data/cards/changes';
  const stream = await openStreamClient(test, { path, method: 'GET', headers: world.headers(userId) });
  await stream.until(({ event }) => event === 'ready');
  return stream;
}

async function insert(app: App, collection: Collection, fields: object) {
  const record = newRecord(fields);
  await insertDocumentRecord(app, collection, record);
  return record._id;
}

/** Carries out a change and waits for the events it makes, in no more than one turn that begins after its commit. */
async function tellsWithinOneTurn(change: () => Promise<unknown>, events: number): Promise<unknown[]> {
  const heard = streams.member.events.filter(({ event }) => event === 'change').length;
  const unconcerned = streams.bystander.text().length;
  await change();
  turns.left = 1;
  const news = (): typeof streams.member.events =>
    streams.member.events.filter(({ event }) => event === 'change').slice(heard);
  await expect.poll(() => news().length).toBe(events);
  turns.left = Infinity;
  release();
  expect(streams.bystander.text().slice(unconcerned)).not.toContain('event: change');
  return news().map(({ data }) => [data.type, (data.document as { board?: string } | undefined)?.board]);
}

/** rules.md 9 and 12: a change of a membership reaches its user’s streams, counted by the turns of the feed. */
describe.skipIf(process.env.BSVC_TEST_TRANSPORT !== undefined)('a change of a membership', () => {
  it.each([
    ['another process, of which nobody tells', () => other, false],
    ['the same process, by a hint alone', () => test.app, true],
  ])('in %s is told exactly, in the next turn', async (_where, appOf, patient) => {
    isPatient = patient;
    const user = world.userIds[0];
    const board = { board: 'b1', user, role: 'viewer' };
    let id!: Awaited<ReturnType<typeof insert>>;
    const joined = await tellsWithinOneTurn(async () => (id = await insert(appOf(), world.members, board)), 2);
    expect(joined).toEqual([
      ['upsert', 'b1'],
      ['upsert', 'b1'],
    ]);
    const removal = { _id: id, isDeleted: false };
    const left = await tellsWithinOneTurn(() => removeDocumentRecord(appOf(), world.members, removal._id), 2);
    expect(left).toEqual([
      ['gone', undefined],
      ['gone', undefined],
    ]);
    expect(streams.member.events.some(({ event }) => event === 'reset' || event === 'end')).toBe(false);
  });
});
