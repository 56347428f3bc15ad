import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, expect, it, vi } from 'vitest';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { Stream } from '../../../src/features/feed/streams/stream.js';
import { rotateKey } from '../../../src/features/projects/manage-keys.js';
import { buildCollection, buildProject, type TestProject } from '../../helpers/build-project.js';
import { openStreamClient, type StreamClient } from '../../helpers/event-stream.js';
import { eventually } from '../../helpers/eventually.js';
import { useTestApp } from '../../helpers/use.js';

const LOOK_MS = 500;
const STREAMS = 25;

/** What was answered, each until it has ended. */
const responses = new Set<ServerResponse>();
let clients: StreamClient[] = [];

const test = await useTestApp();
test.server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
  responses.add(response);
});
afterEach(async () => {
  for (const client of clients) client.close();
  await Promise.all(clients.map(({ ended }) => ended));
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** How many streams by one key, all of them up to date, and looks that come when the test says so. */
async function openStreams(owner: TestProject): Promise<void> {
  const { name } = await buildCollection(test.app, owner.project, { name: 'followed' });
  await setChanges(test.app, owner.project._id, name, { on: true });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  responses.clear();
  const call = { headers: { 'x-api-key': owner.secret }, body: { subscriptions: [{ collection: name }] } };
  clients = await Promise.all(Array.from({ length: STREAMS }, () => openStreamClient(test, call)));
  await Promise.all(clients.map((client) => client.until(({ event }) => event === 'ready')));
}

it('heartbeats › reach every stream once in 25 seconds, those that were opened together one after another', async () => {
  await openStreams(await buildProject(test.app));
  const beats = () =>
    clients.map(
      ({ text }) =>
        text()
          .split('\n')
          .filter((line) => line.startsWith(':')).length,
    );
  const heard = () => beats().reduce((sum, count) => sum + count, 0);
  // Whether its client can take something is asked of a stream that is to be told something.
  const asked = vi.spyOn(Stream.prototype, 'isFull', 'get');

  vi.advanceTimersByTime(38 * LOOK_MS);
  await eventually('half of them are told something', () => heard() === 13);
  vi.advanceTimersByTime(12 * LOOK_MS);
  await eventually('the others are too', () => heard() === STREAMS);
  expect(new Set(beats())).toEqual(new Set([1]));
  // A look touches no stream but those whose heartbeat is due.
  expect(asked).toHaveBeenCalledTimes(STREAMS);
});

it.each([
  {
    cause: 'their key is revoked',
    code: 'API_KEY_INVALID',
    act: ({ project }: TestProject) => rotateKey(test.app, project, 'secret', 0),
  },
  {
    cause: 'the server stops',
    code: 'SERVER_STOPPING',
    act: async () => test.app.readiness.end(),
  },
])('streams › end by turns that others get between, when $cause', async ({ code, act }) => {
  const owner = await buildProject(test.app);
  await openStreams(owner);
  await act(owner);
  // Ending a stream seems to take a millisecond: the processor's pace decides nothing here.
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs++);
  const open = (): number => [...responses].filter(({ writableEnded }) => !writableEnded).length;
  let most = 0;
  let before = open();
  expect(before).toBe(STREAMS);
  const ended = Promise.all(clients.map((client) => client.ended));
  let isOver = false;
  void ended.then(() => (isOver = true));
  // Whoever else waits for a turn of the event loop.
  const others = (): void => {
    const left = open();
    most = Math.max(most, before - left);
    before = left;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  vi.advanceTimersByTime(LOOK_MS);
  await ended;
  expect(clients.map(({ events }) => events.at(-1)!.data.code)).toEqual(Array(STREAMS).fill(code));
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(STREAMS / 2);
});
