import type { Socket } from 'node:net';
import { ObjectId } from 'bson';
import supertest from 'supertest';
import { afterAll, describe, expect, it } from 'vitest';
import { setChanges } from '../../../world/collections.js';
import { rotateKey, updateProject } from '../../../world/projects.js';
import { cutOffTokens, signAccessToken } from '../../../world/users.js';
import { buildCollection, buildProject } from '../../../helpers/build-project.js';
import { openStreamClient, type StreamCall, type StreamClient } from '../../../helpers/event-stream.js';
import { useTestApp } from '../../../helpers/use.js';

const USER = new ObjectId().toHexString();
const ANOTHER = new ObjectId().toHexString();
/** Under row-level security, and under rules that ask about a set. */
const LETTERS = ['letters', 'ruled'];
const OWN_OR_SHARED = 'doc.userId = user.id or doc.board in members[user = user.id].board';
const MAX_PER_ADDRESS = 30;
const UNSENT_BYTES = 64 * 1024;

/** Moves the service's clock ahead of the true one. */
let aheadMs = 0;
const sockets = new Set<Socket>();
const open = new Set<StreamClient>();

const test = await useTestApp({
  clock: { now: () => Date.now() + aheadMs },
  constants: { streamsPerAddress: MAX_PER_ADDRESS, streams: MAX_PER_ADDRESS + 5 },
});
test.server.on('connection', (socket: Socket) => {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
});
const owner = await buildProject(test.app);
const stranger = await buildProject(test.app);
const rls = { mode: 'private' as const, ownerField: 'userId' };
for (const { project } of [owner, stranger]) {
  for (const name of ['notes', 'letters']) {
    await buildCollection(test.app, project, { name, mode: 'flexible', rls: name === 'letters' ? rls : null });
    await setChanges(test.app, project._id, name, { on: true });
  }
  const text = (name: string) => ({ name, type: 'String' as const });
  const fields = ['board', 'user'].map(text);
  await buildCollection(test.app, project, { name: 'members', fields, rules: 'server-only' });
  const ruled = { fields: ['board', 'userId', 'a'].map(text), rules: { read: OWN_OR_SHARED } };
  await buildCollection(test.app, project, { name: 'ruled', ...ruled, changes: { on: true } });
  await buildCollection(test.app, project, { name: 'unkept', mode: 'flexible' });
  await setChanges(test.app, project._id, 'unkept', { on: false });
}
afterAll(async () => {
  for (const client of open) client.close();
});

const secret = (of = owner): Record<string, string> => ({ 'x-api-key': of.secret });
const signedIn = (userId: string, of = owner, ms = 60_000): Record<string, string> => ({
  'x-api-key': of.publishable,
  authorization: `Bearer ${signAccessToken(test.app, of.project, userId, ms)}`,
});
const isReady = ({ event }: { event: string }): boolean => event === 'ready';

async function connect(call: StreamCall): Promise<StreamClient> {
  const client = await openStreamClient(test, call);
  open.add(client);
  return client;
}

async function close(...clients: StreamClient[]): Promise<void> {
  for (const client of clients) {
    client.close();
    await client.ended;
    open.delete(client);
  }
}

const follow = (subscription: object, headers = secret()) =>
  connect({ headers, body: { subscriptions: [subscription] } });

async function write(name: string, document: object): Promise<string> {
  const response = await supertest(test.server).post(`/api/data/${name}`).set(secret()).send(document);
  expect(response.status).toBe(201);
  return (response.body as { _id: string })._id;
}

async function ticketOf(headers: Record<string, string>): Promise<string> {
  const response = await supertest(test.server).post('/api/realtime/ticket').set(headers);
  expect(response.status).toBe(201);
  return (response.body as { data: { ticket: string } }).data.ticket;
}

const byTicket = (ticket: string, name = 'notes') =>
  connect({ method: 'GET', path: `/api/data/${name}/changes?ticket=${ticket}` });

const said = ({ status, body }: StreamClient): string => [status, body.code].filter(Boolean).join(' ');

describe('a stream is refused before its first byte', () => {
  const many = (text: string, times: number): string => Array.from({ length: times }, () => text).join();
  const conditions = (count: number): string => Array.from({ length: count }, (_, n) => `f${n}=1`).join('&');
  const refused: [string, unknown, string][] = [
    ['no subscriptions', { subscriptions: [] }, '400 VALIDATION_FAILED'],
    ['no list of subscriptions', { subscriptions: { collection: 'notes' } }, '400 VALIDATION_FAILED'],
    ['51 subscriptions', { subscriptions: Array(51).fill({ collection: 'notes' }) }, '400 VALIDATION_FAILED'],
    ['an unknown collection', { subscriptions: [{ collection: 'none' }] }, '404 COLLECTION_NOT_FOUND'],
    ['users', { subscriptions: [{ collection: 'Users' }] }, '403 USERS_BLOCKED'],
    ['changes that are off', { subscriptions: [{ collection: 'unkept' }] }, '409 CHANGES_OFF'],
    ['a pattern', { subscriptions: [{ collection: 'notes', filter: 'a_regex=.*' }] }, '400 INVALID_QUERY'],
    ['21 conditions', { subscriptions: [{ collection: 'notes', filter: conditions(21) }] }, '400 INVALID_QUERY'],
    [
      'a list of 101',
      { subscriptions: [{ collection: 'notes', filter: `a_in=${many('x', 101)}` }] },
      '400 INVALID_QUERY',
    ],
    ['a page', { subscriptions: [{ collection: 'notes', filter: 'page=2' }] }, '400 INVALID_QUERY'],
    ['the trash', { subscriptions: [{ collection: 'notes', filter: 'include_deleted=true' }] }, '400 INVALID_QUERY'],
    ['a cursor in the filter', { subscriptions: [{ collection: 'notes', filter: 'since=now' }] }, '400 INVALID_QUERY'],
    ['an operator', { subscriptions: [{ collection: 'notes', filter: '$where=1' }] }, '400 INVALID_QUERY'],
    [
      'an operator in an object',
      { subscriptions: [{ collection: 'notes', filter: { $where: 1 } }] },
      '400 INVALID_QUERY',
    ],
    ['a list as a filter', { subscriptions: [{ collection: 'notes', filter: [] }] }, '400 VALIDATION_FAILED'],
    ['a forged cursor', { subscriptions: [{ collection: 'notes', since: 'a.b' }] }, '400 INVALID_CURSOR'],
    [
      '65 KiB',
      { subscriptions: Array(9).fill({ collection: 'notes', filter: `a=${'x'.repeat(8000)}` }) },
      '413 BODY_TOO_LARGE',
    ],
  ];
  it.each(refused)('with %s', async (_what, body, expected) => {
    expect(said(await connect({ headers: secret(), body }))).toBe(expected);
  });

  it('and names the subscription that is to blame', async () => {
    const body = { subscriptions: [{ collection: 'notes' }, { collection: 'none' }] };
    const { body: refusal } = await connect({ headers: secret(), body });
    expect(refusal.details).toMatchObject([{ n: 1, field: 'subscriptions.1' }]);
  });

  it('to whom a list of the collection would be refused', async () => {
    const headers: [Record<string, string>, string][] = [
      [{}, '401 API_KEY_MISSING'],
      [{ 'x-api-key': owner.publishable }, '401 AUTH_REQUIRED'],
      [{ ...signedIn(USER), authorization: 'Bearer x' }, '401 TOKEN_INVALID'],
      [signedIn(USER, owner, -1000), '401 TOKEN_EXPIRED'],
      [{ ...signedIn(USER, stranger), 'x-api-key': owner.publishable }, '401 TOKEN_INVALID'],
      [{ ...signedIn(USER), origin: 'https://elsewhere.example' }, '403 ORIGIN_NOT_ALLOWED'],
    ];
    await updateProject(test.app, owner.project._id.toHexString(), { allowedDomains: ['app.example'] });
    for (const [own, expected] of headers) {
      for (const letters of LETTERS) {
        expect(said(await follow({ collection: letters }, own))).toBe(expected);
        const path = `/api/data/${letters}/changes`;
        expect(said(await connect({ method: 'GET', path, headers: own }))).toBe(expected);
      }
    }
  });
});

describe('a cursor', () => {
  it.each(LETTERS)('opens no stream of another project, collection, filter or user (%s)', async (letters) => {
    const client = await follow({ collection: letters, filter: 'a=1' }, signedIn(USER));
    await client.until(isReady);
    const since = client.cursor()!;
    await close(client);
    const ask = async (subscription: object, headers: Record<string, string>): Promise<string> => {
      const answered = await follow({ collection: letters, filter: 'a=1', since, ...subscription }, headers);
      await close(answered);
      return said(answered);
    };
    expect(await ask({}, signedIn(USER))).toBe('200');
    expect(await ask({}, signedIn(ANOTHER))).toBe('400 INVALID_CURSOR');
    // Under rules the secret key has another scope altogether: it starts over.
    expect(await ask({}, secret())).toBe(letters === 'ruled' ? '200' : '400 INVALID_CURSOR');
    expect(await ask({}, secret(stranger))).toBe('400 INVALID_CURSOR');
    expect(await ask({ collection: 'notes' }, secret())).toBe('400 INVALID_CURSOR');
    expect(await ask({ filter: 'a=2' }, signedIn(USER))).toBe('400 INVALID_CURSOR');
    expect(await ask({ since: `${since}x` }, signedIn(USER))).toBe('400 INVALID_CURSOR');
  });
});

describe('a ticket', () => {
  it('is good once, of those who use it at the same moment', async () => {
    const ticket = await ticketOf(secret());
    const clients = await Promise.all(Array.from({ length: 8 }, () => byTicket(ticket)));
    expect(clients.map(said).sort()).toEqual(['200', ...Array<string>(7).fill('401 TICKET_INVALID')]);
    await close(...clients);
  });

  it('is worth nothing when it is made up, too old, or its key or token has ended', async () => {
    for (const made of ['', 'x', 'x'.repeat(5000), '%00', '$ne']) {
      expect(said(await byTicket(made))).toBe('401 TICKET_INVALID');
    }
    const old = await ticketOf(secret());
    aheadMs += 61_000;
    expect(said(await byTicket(old))).toBe('401 TICKET_INVALID');
    const another = await buildProject(test.app);
    const ofKey = await ticketOf(secret(another));
    await rotateKey(test.app, another.project, 'secret', 0);
    expect(said(await byTicket(ofKey))).toBe('401 TICKET_INVALID');
    const ofUser = await ticketOf(signedIn(USER));
    await cutOffTokens(test.app, owner.project._id, new ObjectId(USER), {
      before: new Date(Date.now() + aheadMs + 1000),
    });
    expect(said(await byTicket(ofUser, 'letters'))).toBe('401 TICKET_INVALID');
  });

  it.each(LETTERS)('has no more rights than whoever got it (%s)', async (letters) => {
    const user = new ObjectId().toHexString();
    await write(letters, { userId: ANOTHER });
    const client = await byTicket(await ticketOf(signedIn(user)), letters);
    await client.until(isReady);
    expect(client.known().size).toBe(0);
    expect(client.text()).not.toContain(ANOTHER);
    await close(client);
    const withoutUser = await ticketOf({ 'x-api-key': owner.publishable });
    expect(said(await byTicket(withoutUser, letters))).toBe('401 AUTH_REQUIRED');
    expect(said(await byTicket(await ticketOf({ 'x-api-key': owner.publishable }), 'users'))).toBe('403 USERS_BLOCKED');
  });

  it('keeps neither key nor token in the store', async () => {
    const headers = signedIn(ANOTHER);
    const ticket = await ticketOf(headers);
    const stored = JSON.stringify(await test.app.db.collection('one_time_tokens').find({}).toArray());
    for (const word of [ticket, headers['x-api-key']!, headers.authorization!.split(' ')[1]!]) {
      expect(stored).not.toContain(word);
    }
  });
});

describe('a stream ends in the middle, with a word why', () => {
  async function endOf(client: StreamClient): Promise<string | undefined> {
    await client.ended;
    open.delete(client);
    expect(client.events.at(-1)?.event).toBe('end');
    return client.events.at(-1)?.data.code;
  }

  it.each(LETTERS)('when the token’s time is over (%s)', async (letters) => {
    const client = await follow({ collection: letters }, signedIn(new ObjectId().toHexString(), owner, 60_000));
    await client.until(isReady);
    aheadMs += 61_000;
    expect(await endOf(client)).toBe('TOKEN_EXPIRED');
  });

  it.each(LETTERS)('when the token is cut off (%s)', async (letters) => {
    const user = new ObjectId().toHexString();
    const client = await follow({ collection: letters }, signedIn(user));
    await client.until(isReady);
    await cutOffTokens(test.app, owner.project._id, new ObjectId(user), {
      before: new Date(Date.now() + aheadMs + 1000),
    });
    expect(await endOf(client)).toBe('TOKEN_INVALID');
  });

  it('when the key is revoked', async () => {
    const another = await buildProject(test.app);
    await buildCollection(test.app, another.project, { name: 'notes' });
    await setChanges(test.app, another.project._id, 'notes', { on: true });
    const client = await follow({ collection: 'notes' }, secret(another));
    await client.until(isReady);
    await rotateKey(test.app, another.project, 'secret', 0);
    expect(await endOf(client)).toBe('API_KEY_INVALID');
  });

  it('when its origin leaves the allowlist', async () => {
    const id = stranger.project._id.toHexString();
    await updateProject(test.app, id, { allowedDomains: ['app.example'] });
    const client = await follow({ collection: 'notes' }, { ...secret(stranger), origin: 'https://app.example' });
    await client.until(isReady);
    await updateProject(test.app, id, { allowedDomains: ['other.example'] });
    expect(await endOf(client)).toBe('ORIGIN_NOT_ALLOWED');
  });
});

describe('a flood of streams', () => {
  it('of one address is 429 beyond its limit, and leaves room for others when they go', async () => {
    const clients = await Promise.all(
      Array.from({ length: MAX_PER_ADDRESS + 4 }, () => follow({ collection: 'notes', since: 'now' })),
    );
    const outcomes = clients.map(said);
    expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(MAX_PER_ADDRESS);
    expect(outcomes.filter((outcome) => outcome === '429 TOO_MANY_STREAMS')).toHaveLength(4);
    expect(clients.find(({ status }) => status === 429)!.headers['retry-after']).toBe('5');
    const overTicket = await byTicket(await ticketOf(secret()));
    expect(said(overTicket)).toBe('429 TOO_MANY_STREAMS');
    await close(...clients);
    const later = await connect({ method: 'GET', path: '/api/data/notes/changes', headers: secret() });
    expect(said(later)).toBe('200');
    await close(later);
  });

  it('of one project is 403 beyond its plan’s limit', async () => {
    await updateProject(test.app, owner.project._id.toHexString(), { limits: { streams: 1 } });
    const first = await follow({ collection: 'notes' });
    expect(said(await follow({ collection: 'notes' }))).toBe('403 QUOTA_EXCEEDED');
    const path = '/api/data/notes/changes';
    expect(said(await connect({ method: 'GET', path, headers: secret() }))).toBe('403 QUOTA_EXCEEDED');
    await updateProject(test.app, owner.project._id.toHexString(), { limits: { streams: null } });
    await close(first);
  });

  it('does not count among the requests under way', async () => {
    const small = await useTestApp({ constants: { maxInFlight: 3 } });
    const own = await buildProject(small.app);
    await buildCollection(small.app, own.project, { name: 'notes' });
    await setChanges(small.app, own.project._id, 'notes', { on: true });
    const call = { headers: { 'x-api-key': own.secret }, body: { subscriptions: [{ collection: 'notes' }] } };
    const clients: StreamClient[] = [];
    for (let n = 0; n < 6; n++) clients.push(await openStreamClient(small, call));
    expect(clients.map(said)).toEqual(Array(6).fill('200'));
    // Health checks pass in any case; a list does not.
    const listed = await supertest(small.server).get('/api/data/notes').set('x-api-key', own.secret);
    expect(listed.status).toBe(200);
    small.app.readiness.end();
    for (const client of clients) {
      await client.ended;
      const { code, retryAfterMs } = client.events.at(-1)!.data;
      expect(code).toBe('SERVER_STOPPING');
      expect(retryAfterMs).toBeGreaterThan(0);
      expect(retryAfterMs).toBeLessThanOrEqual(5000);
    }
  });
});

describe('a subscriber that never reads', () => {
  it('makes the service hold no more than a page for it, and has everything when it reads on', async () => {
    const text = 'x'.repeat(30_000);
    const client = await follow({ collection: 'notes', filter: 'flood=1' });
    const other = await follow({ collection: 'notes', filter: 'flood=1' });
    await Promise.all([client.until(isReady), other.until(isReady)]);
    client.pause();
    let most = 0;
    const ids: string[] = [];
    // More than the system takes into its own buffers.
    for (let round = 0; round < 12; round++) {
      const documents = Array.from({ length: 30 }, (_, n) => ({ flood: 1, n, text }));
      const bulk = await supertest(test.server).post('/api/data/notes/bulk').set(secret()).send(documents);
      ids.push(...(bulk.body as { data: { ids: string[] } }).data.ids);
      await other.until(() => other.known().size === ids.length);
      for (const socket of sockets) most = Math.max(most, socket.writableLength);
    }
    // What was unsent, and the batch that was then given: those of others are not queued for it.
    expect(most).toBeLessThan(UNSENT_BYTES + 2 * 30 * 40_000);
    expect(client.known().size).toBe(0);
    client.resume();
    await client.until(() => client.known().size === ids.length);
    expect([...client.known().keys()].sort()).toEqual([...ids].sort());
    await close(client, other);
  });
});
