import request from 'supertest';
import { expect, it } from 'vitest';
import { setChanges } from '../world/collections.js';
import { buildCollection, buildProject, type TestProject } from '../helpers/build-project.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

const PLACES = 20;

const test = await useTestApp({ constants: { streams: PLACES }, settings: { BSVC_TRUST_PROXY: '1' } });
const one = await buildProject(test.app);
const other = await buildProject(test.app);
for (const { project } of [one, other]) {
  await buildCollection(test.app, project, { name: 'notes' });
  await setChanges(test.app, project._id, 'notes', { on: true });
}

const read = (of: TestProject, query: string, address: string) =>
  request(test.server)
    .get(`/api/data/notes/changes?${query}`)
    .set({ 'x-api-key': of.secret, 'x-forwarded-for': address });

/** The answers of requests that wait for changes; those that have a place have none yet. */
async function poll(of: TestProject, times: number, address: string): Promise<{ status: number; code?: string }[]> {
  const { cursor } = ((await read(of, 'since=now', '192.0.2.200').expect(200)).body as { data: { cursor: string } })
    .data;
  const answers: { status: number; code?: string }[] = [];
  for (let at = 0; at < times; at++) {
    void read(of, `wait=25&since=${cursor}`, address).then(({ status, body }) => {
      answers.push({ status, code: (body as { code?: string }).code });
    });
  }
  return answers;
}

it('requests that wait for changes have places by address and project, so that a stranger leaves some to others', async () => {
  const refused = { status: 503, code: 'BUSY' };
  const greedy = await poll(one, 30, '192.0.2.1');
  // A quarter of all while they are free; others of the project have a tenth each until it has its half.
  await eventually('the rest is refused', () => greedy.length === 25);
  expect(greedy).toEqual(Array(25).fill(refused));
  const same = await Promise.all([2, 3, 4, 5].map((address) => poll(one, 2, `192.0.2.${address}`)));
  await eventually('its project is full', () => same.flat().length === 3);
  expect(same.flat()).toEqual(Array(3).fill(refused));
  const neighbour = await poll(other, 2, '192.0.2.9');

  for (const { secret } of [one, other]) {
    const stored = request(test.server).post('/api/data/notes').set('x-api-key', secret);
    await stored.send({ a: 1 }).expect(201);
  }
  await eventually('who waited is answered', () => neighbour.length === 2 && greedy.length === 30);
  expect(neighbour.map(({ status }) => status)).toEqual([200, 200]);
  await eventually('of its project too', () => same.flat().length === 8);
  expect(greedy.filter(({ status }) => status === 200)).toHaveLength(5);
  // What was given back is free again.
  const again = await poll(one, 5, '192.0.2.1');
  await request(test.server).post('/api/data/notes').set('x-api-key', one.secret).send({ a: 2 }).expect(201);
  await eventually('they are answered', () => again.length === 5);
  expect(again.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
});
