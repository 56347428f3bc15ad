import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../../../src/app.js';
import type { Collection } from '../../../../src/features/collections/collection.js';
import { insertDocument } from '../../../../src/features/documents/write/insert-document.js';
import { editWebhook } from '../../../../src/features/webhooks/edit-webhook.js';
import type { Delivery } from '../../../../src/features/webhooks/deliveries/delivery.js';
import { replayDelivery, testWebhook } from '../../../../src/features/webhooks/deliveries/try-again.js';
import { requireWebhook } from '../../../../src/features/webhooks/webhook-store.js';
import { openOutbound } from '../../../../src/platform/network/outbound.js';
import { buildCollection, buildProject, type TestProject } from '../../../helpers/build-project.js';
import { buildWebhook, listAllDeliveries, settleWebhooks } from '../../../helpers/build-webhook.js';
import { createFakeClock, type FakeClock } from '../../../helpers/fake-clock.js';
import { listen } from '../../../helpers/listen.js';
import { openTestApp, type TestApp } from '../../../helpers/open-test-app.js';
import { openWebhookReceiver, type WebhookReceiver } from '../../../helpers/webhook-receiver.js';

/** For receivers that never answer; those that do have as long as in production. */
const SHORT_TIMEOUT_MS = 150;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** decisions.md 8. */
const SCHEDULE = [5 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR];

let test: TestApp;
let app: App;
let clock: FakeClock;
let receiver: WebhookReceiver;
let owner: TestProject;
let posts: Collection;

beforeEach(async () => {
  clock = createFakeClock();
  test = await openTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  ({ app } = test);
  receiver = await openWebhookReceiver();
  owner = await buildProject(app);
  posts = await buildCollection(app, owner.project, { name: 'posts' });
});

afterEach(async () => {
  if (app !== test.app) await app.outbound.close();
  await test.close();
  await receiver.close();
});

const insertPost = (title = 'one') => insertDocument(app, { collection: posts, writer: null }, { title });

/**
 * Runs what is due, moves on to the next moment at which something is, and so on until nothing waits. The pauses
 * between attempts.
 */
async function playToEnd(): Promise<{ delivery: Delivery; pauses: number[] }> {
  const pauses: number[] = [];
  for (;;) {
    await settleWebhooks(app);
    const [delivery] = await listAllDeliveries(app);
    if (delivery!.state !== 'pending') return { delivery: delivery!, pauses };
    const pause = delivery!.dueAt.getTime() - clock.now();
    pauses.push(pause);
    clock.advance(pause - 1);
    await settleWebhooks(app);
    expect((await listAllDeliveries(app))[0]!.attempts).toHaveLength(pauses.length);
    clock.advance(1);
  }
}

function expectPauses(pauses: number[], schedule: readonly number[]): void {
  expect(pauses).toHaveLength(schedule.length);
  pauses.forEach((pause, at) => {
    expect(pause).toBeGreaterThanOrEqual(schedule[at]!);
    expect(pause).toBeLessThanOrEqual(schedule[at]! * 1.1);
  });
}

interface Case {
  receiver: string;
  answer: (response: ServerResponse) => void;
  /** Never comes to the end of an answer. */
  hangs?: true;
  state: 'delivered' | 'failed';
  pauses: readonly number[];
  status: number | null;
  error?: RegExp;
}

/** One that is tried by the whole schedule, in vain. */
const failing = (receiver: string, status: number | null, answer: Case['answer'], error?: RegExp): Case => ({
  ...{ receiver, answer, state: 'failed', pauses: SCHEDULE, status, ...(error && { error }) },
});
const NEVER_WHOLE = /no complete answer in time/;
const drip = (r: ServerResponse): void => {
  r.writeHead(200);
  const drops = setInterval(() => r.write('.'), 20);
  r.on('close', () => clearInterval(drops));
};
const pourForEver = (r: ServerResponse): void => {
  r.writeHead(200);
  const chunk = Buffer.alloc(16 * 1024, 'x');
  const pour = (): void => {
    while (!r.destroyed && r.write(chunk));
    r.once('drain', pour);
  };
  pour();
};

const CASES: Case[] = [
  { receiver: '200', answer: (r) => void r.writeHead(200).end('thanks'), state: 'delivered', pauses: [], status: 200 },
  { receiver: '204', answer: (r) => void r.writeHead(204).end(), state: 'delivered', pauses: [], status: 204 },
  { receiver: 'a 200 with an endless body', answer: pourForEver, state: 'delivered', pauses: [], status: 200 },
  { receiver: '410', answer: (r) => void r.writeHead(410).end(), state: 'failed', pauses: [], status: 410 },
  failing('300', 300, (r) => void r.writeHead(300).end(), /answered 300/),
  failing('301 to a good address', 301, (r) => void r.writeHead(301, { location: receiver.url }).end(), /answered 301/),
  failing('400', 400, (r) => void r.writeHead(400).end('bad'), /answered 400/),
  failing('500', 500, (r) => void r.writeHead(500).end()),
  {
    ...failing('429 that asks for two minutes', 429, (r) => void r.writeHead(429, { 'retry-after': '120' }).end()),
    pauses: [2 * MINUTE, 2 * MINUTE, ...SCHEDULE.slice(2)],
  },
  { ...failing('one that never answers', null, () => undefined, NEVER_WHOLE), hangs: true },
  { ...failing('a 200 that drips for ever', null, drip, NEVER_WHOLE), hangs: true },
  failing('one that resets the connection', null, (r) => r.socket?.resetAndDestroy(), /connection failed/),
];

describe('a delivery', () => {
  it.each(CASES)('to $receiver ends as $state', async ({ answer, hangs, state, pauses, status, error }) => {
    receiver.answer = answer;
    if (hangs) app = { ...app, outbound: openOutbound({ allowPrivate: true, timeoutMs: SHORT_TIMEOUT_MS }) };
    const { webhook } = await buildWebhook(app, owner.project, receiver.url);
    await insertPost();
    const played = await playToEnd();
    expect(played.delivery.state).toBe(state);
    expectPauses(played.pauses, pauses);
    expect(played.delivery.attempts).toHaveLength(pauses.length + 1);
    for (const attempt of played.delivery.attempts) {
      expect(attempt.status).toBe(status);
      if (error) expect(attempt.error).toMatch(error);
      if (state === 'delivered') expect(attempt.error).toBeNull();
      expect(attempt.response.length).toBeLessThanOrEqual(1024);
    }
    // On a busy machine the short time is over before a request is heard.
    if (hangs) expect(receiver.received.length).toBeLessThanOrEqual(pauses.length + 1);
    else expect(receiver.received).toHaveLength(pauses.length + 1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    const after = await requireWebhook(app, owner.project._id, webhook.id.toHexString());
    expect(after.disabled).toBe(status === 410 ? 'gone' : null);
  });

  it('to a receiver whose certificate nobody vouches for is a failure', async () => {
    const tls = join(import.meta.dirname, '../../../helpers/tls');
    const server = createTlsServer(
      { key: readFileSync(join(tls, 'self-signed.key')), cert: readFileSync(join(tls, 'self-signed.pem')) },
      (_request, response) => response.end(),
    );
    const { url, close } = await listen(server);
    try {
      await buildWebhook(app, owner.project, `${url.replace('http:', 'https:')}/`);
      await insertPost();
      const { delivery, pauses } = await playToEnd();
      expect(delivery.state).toBe('failed');
      expectPauses(pauses, SCHEDULE);
      for (const attempt of delivery.attempts) expect(attempt).toMatchObject({ status: null, error: /TLS/ });
    } finally {
      await close();
    }
  });

  it('to a receiver that comes back is delivered with the very same bytes', async () => {
    let refusals = 3;
    receiver.answer = (response) => void response.writeHead(refusals-- > 0 ? 503 : 200).end();
    await buildWebhook(app, owner.project, receiver.url);
    await insertPost();
    const { delivery, pauses } = await playToEnd();
    expect(delivery.state).toBe('delivered');
    expectPauses(pauses, SCHEDULE.slice(0, 3));
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  });

  it('honours a Retry-After given as a date, but never beyond twelve hours', async () => {
    const asked = new Date(clock.now() + 40 * SECOND).toUTCString();
    const answers = [asked, 'Fri, 31 Dec 2027 23:59:59 GMT', 'soon'];
    receiver.answer = (response) => {
      const next = answers.shift();
      response.writeHead(next ? 503 : 200, next ? { 'retry-after': next } : {}).end();
    };
    await buildWebhook(app, owner.project, receiver.url);
    await insertPost();
    const { pauses } = await playToEnd();
    expectPauses(pauses.slice(0, 1), [40 * SECOND]);
    expect(pauses[1]).toBe(12 * HOUR);
    expectPauses(pauses.slice(2), [5 * MINUTE]);
  });
});

describe('a webhook whose receiver is gone (410)', () => {
  it('is disabled, gives up what waits, gets no further events, and can be enabled again', async () => {
    const { webhook } = await buildWebhook(app, owner.project, receiver.url);
    const id = webhook.id.toHexString();
    receiver.answer = (response) => void response.writeHead(410).end();
    await insertPost('first');
    await insertPost('second');
    await settleWebhooks(app);
    await insertPost('third');
    await settleWebhooks(app);
    const deliveries = await listAllDeliveries(app);
    expect(deliveries.map(({ state }) => state)).toEqual(['failed', 'failed']);
    await expect(replayDelivery(app, owner.project, id, deliveries[0]!._id)).rejects.toMatchObject({
      code: 'WEBHOOK_DISABLED',
    });
    receiver.answer = (response) => void response.writeHead(200).end();
    expect((await testWebhook(app, owner.project, id)).state).toBe('delivered');
    expect(await editWebhook(app, owner.project, id, { enabled: true })).toMatchObject({ disabled: null });
    await insertPost('fourth');
    await settleWebhooks(app);
    expect(receiver.received.at(-1)!.event.data.title).toBe('fourth');
  });
});

describe('a webhook that fails for five days', () => {
  it('is disabled; one success in between starts the count anew', async () => {
    const { webhook } = await buildWebhook(app, owner.project, receiver.url);
    const state = () => requireWebhook(app, owner.project._id, webhook.id.toHexString());
    const fail = (response: ServerResponse) => void response.writeHead(500).end();
    const accept = (response: ServerResponse) => void response.writeHead(200).end();
    const sendOne = async (answer: typeof fail): Promise<void> => {
      receiver.answer = answer;
      await insertPost();
      await settleWebhooks(app);
    };
    await sendOne(fail);
    expect((await state()).failingSince).toEqual(new Date(clock.now()));
    clock.advance(4 * 24 * HOUR);
    await sendOne(accept);
    expect((await state()).failingSince).toBeNull();
    await sendOne(fail);
    clock.advance(5 * 24 * HOUR - 1);
    await sendOne(fail);
    expect((await state()).disabled).toBeNull();
    clock.advance(1);
    await sendOne(fail);
    expect((await state()).disabled).toBe('failing');
  });
});

describe('replaying a delivery', () => {
  it('sends it again under the same id and holds up nothing', async () => {
    const { webhook } = await buildWebhook(app, owner.project, receiver.url);
    await insertPost();
    const { delivery } = await playToEnd();
    receiver.answer = (response) => void response.writeHead(500).end();
    await replayDelivery(app, owner.project, webhook.id.toHexString(), delivery._id);
    await settleWebhooks(app);
    receiver.answer = (response) => void response.writeHead(200).end();
    clock.advance(6 * SECOND);
    await settleWebhooks(app);
    expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual(Array(3).fill(delivery.eventId));
    expect((await listAllDeliveries(app))[0]).toMatchObject({ state: 'delivered' });
    await expect(replayDelivery(app, owner.project, webhook.id.toHexString(), 'evt_x.y')).rejects.toMatchObject({
      code: 'DELIVERY_NOT_FOUND',
    });
  });
});
