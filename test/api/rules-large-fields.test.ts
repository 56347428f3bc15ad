import { ObjectId } from 'bson';
import supertest from 'supertest';
import { expect, it } from 'vitest';
import { addCollection, completeRules, setRules } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { openStreamFollower } from '../helpers/stream-follower.js';
import { useTestApp } from '../helpers/use.js';

const READ = 'user.id in doc.members or doc.o.x = user.id or user.id in doc.rows.who';
const ADA = new ObjectId().toHexString();

const test = await useTestApp();
const owner = await buildProject(test.app);
const authorization = `Bearer ${signAccessToken(test.app, owner.project, ADA, 600_000)}`;
const headers = { 'x-api-key': owner.publishable, authorization };
const fields = [
  { name: 'members', type: 'Array' as const, items: { type: 'String' as const } },
  {
    name: 'o',
    type: 'Object' as const,
    fields: ['x', 'text'].map((name) => ({ name, type: 'String' as const, maxLength: 200_000 })),
  },
  {
    name: 'rows',
    type: 'Array' as const,
    items: { type: 'Object' as const, fields: [{ name: 'who', type: 'String' as const }] },
  },
];
await addCollection(test.app, owner.project, {
  name: 'things',
  fields,
  rules: completeRules({ read: READ }),
  changes: { on: true },
});

const others = (count: number): string[] => Array.from({ length: count }, () => new ObjectId().toHexString());

/** What Ada may read by a field that takes so many bytes, and the change that takes it from her. */
const SHARED: [string, (bytes: number) => object, (bytes: number) => object][] = [
  ['a list', (bytes) => ({ members: [...others(bytes / 34), ADA] }), (bytes) => ({ members: others(bytes / 34) })],
  ['a part of an object', (bytes) => ({ o: { x: ADA, text: 'x'.repeat(bytes) } }), () => ({ 'o.x': 'another' })],
  [
    'a list of objects',
    (bytes) => ({ rows: [...others(bytes / 50), ADA].map((who) => ({ who })) }),
    () => ({ rows: [] }),
  ],
];
const SIZES = [100, 1_000, 20_000, 100_000];

it.each(SHARED.flatMap(([what, before, after]) => SIZES.map((bytes) => ({ what, bytes, before, after }))))(
  'by $what of $bytes bytes tells those who lose a document that it is gone',
  async ({ bytes, before, after }) => {
    const asServer = { 'x-api-key': owner.secret };
    const made = await supertest(test.server).post('/api/data/things').set(asServer).send(before(bytes));
    expect(made.status, made.text.slice(0, 300)).toBe(201);
    const { _id: id } = made.body as { _id: string };
    const [page, stream] = [openStreamFollower('things', ''), openStreamFollower('things', '')];
    expect(await page.poll(test, headers)).toBe(200);
    expect(await stream.connect(test, headers)).toBe(200);
    await expect.poll(() => [...stream.known.keys()]).toEqual([id]);
    const changed = await supertest(test.server).patch(`/api/data/things/${id}`).set(asServer).send(after(bytes));
    expect(changed.status, changed.text.slice(0, 300)).toBe(200);
    await expect.poll(() => stream.known.size).toBe(0);
    expect([200, 410]).toContain(await page.poll(test, headers));
    expect(page.known.size).toBe(0);
    await stream.disconnect();
  },
);

it('tells those who slept through other rules that a document is gone', async () => {
  const asServer = { 'x-api-key': owner.secret };
  const make = (body: object) => supertest(test.server).post('/api/data/things').set(asServer).send(body);
  const setRead = (read: string) =>
    setRules(test.app, owner.project._id, 'things', completeRules({ read }), { agreed: true });
  const { _id: id } = (await make({ members: [...others(100), ADA] })).body as { _id: string };
  const sleeper = openStreamFollower('things', '');
  expect(await sleeper.poll(test, headers)).toBe(200);
  expect([...sleeper.known.keys()]).toEqual([id]);
  // What an entry of the log keeps of a large document is what the rules of its time ask for.
  await setRead('doc.o.x = user.id');
  expect(await openStreamFollower('things', '').poll(test, headers)).toBe(200);
  await supertest(test.server)
    .patch(`/api/data/things/${id}`)
    .set(asServer)
    .send({ members: others(100) });
  await setRead(READ);
  expect([200, 410]).toContain(await sleeper.poll(test, headers));
  expect(sleeper.known.size).toBe(0);
});
