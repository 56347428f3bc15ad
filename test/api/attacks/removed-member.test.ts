import { beforeEach, describe, expect, it } from 'vitest';
import supertest from 'supertest';
import { ObjectId } from 'bson';
import { addCollection, completeRules } from '../../world/collections.js';
import { signAccessToken } from '../../world/users.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { openStreamFollower } from '../../helpers/stream-follower.js';
import { useTestApp } from '../../helpers/use.js';

const ON_MONGODB = process.env.BSVC_TEST_TRANSPORT === 'wire';
const BOARD = 'the-board';
const MINE = 'doc.board in members[user = user.id].board';

let aheadMs = 0;
let owner: TestProject;
let member: { id: string; headers: Record<string, string> };
let membership: string;
let cards: string[];

const test = await useTestApp({ clock: { now: () => Date.now() + aheadMs } });

type Method = 'get' | 'post' | 'patch' | 'delete';
interface Reply {
  status: number;
  text: string;
  body: { _id?: string; code?: string; data?: { items?: unknown[]; nextCursor?: string | null; ids?: string[] } };
}

const send = async (headers: Record<string, string>, method: Method, path: string, body?: object): Promise<Reply> => {
  const call = supertest(test.server)[method](`/api/${path}`).set(headers);
  const { status, text, body: reply } = body === undefined ? await call : await call.send(body);
  return { status, text, body: reply as Reply['body'] };
};
const asServer = (method: Method, path: string, body?: object): Promise<Reply> =>
  send({ 'x-api-key': owner.secret }, method, path, body);
const asMember = (method: Method, path: string, body?: object): Promise<Reply> =>
  send(member.headers, method, path, body);

beforeEach(async () => {
  const { app } = test;
  owner = await buildProject(app);
  const { project } = owner;
  const texts = (...names: string[]) => names.map((name) => ({ name, type: 'String' as const }));
  const changes = { on: true };
  await addCollection(app, project, { name: 'members', fields: texts('board', 'user'), rules: 'server-only', changes });
  const rules = completeRules({ read: MINE, create: MINE, update: MINE, delete: MINE });
  await addCollection(app, project, { name: 'cards', fields: texts('board', 'title'), rules, changes });
  const id = new ObjectId().toHexString();
  const authorization = `Bearer ${signAccessToken(app, project, id, 600_000)}`;
  member = { id, headers: { 'x-api-key': owner.publishable, authorization } };
  membership = (await asServer('post', 'data/members', { board: BOARD, user: id })).body._id!;
  const bodies = Array.from({ length: 6 }, (_, n) => ({ board: BOARD, title: `card-${n}` }));
  cards = (await asServer('post', 'data/cards/bulk', bodies)).body.data!.ids!;
});

/** Ends the membership; afterwards no read goes by what it said, on a MongoDB after the age that sets may have. */
async function removeMember(permanent = false): Promise<void> {
  const { status } = await asServer('delete', `data/members/${membership}${permanent ? '?permanent=true' : ''}`);
  expect(status).toBe(200);
  aheadMs += 1_000;
}

/** The card goes to a board of others. */
async function moveCard(id: string): Promise<void> {
  expect((await asServer('patch', `data/cards/${id}`, { board: 'of others' })).status).toBe(200);
}

/** Attaches a file to a card as the member and returns its path; throws the status of a refusal. */
async function attachFile(id: string): Promise<string> {
  const data = new FormData();
  data.set('attach', JSON.stringify({ collection: 'cards', id }));
  data.set('file', new File(['bytes'], 'plan.png', { type: 'image/png' }));
  const reply = await fetch(`${test.url}/api/storage/upload`, { method: 'POST', headers: member.headers, body: data });
  if (reply.status !== 201) throw new Error(`${reply.status}: ${await reply.text()}`);
  return ((await reply.json()) as { path: string }).path;
}

const withoutRequestId = ({ text }: Reply): string => text.replace(/"requestId":"[^"]*"/, '');

const SECRET = 'a-secret-of-afterwards';

describe('a member who is removed', () => {
  it('gets nothing more by a cursor of a list that was begun before', async () => {
    const first = await asMember('get', 'data/cards?limit=2&cursor=start');
    expect(first.body.data!.items).toHaveLength(2);
    await removeMember();
    await asServer('post', 'data/cards', { board: BOARD, title: SECRET });
    const next = await asMember('get', `data/cards?limit=2&cursor=${encodeURIComponent(first.body.data!.nextCursor!)}`);
    expect(next.body.data?.items ?? []).toEqual([]);
  });

  it('gets nothing more by a cursor of the changes', async () => {
    const { body } = await asMember('get', 'data/cards/changes');
    const { cursor } = body.data as unknown as { cursor: string };
    await removeMember(true);
    await asServer('patch', `data/cards/${cards[0]!}`, { title: SECRET });
    const { status, text } = await asMember('get', `data/cards/changes?since=${encodeURIComponent(cursor)}`);
    expect(status).toBe(ON_MONGODB ? 410 : 200);
    expect(text).not.toContain(SECRET);
  });

  it('is told that all is gone by a stream that is open, and nothing afterwards', async () => {
    const follower = openStreamFollower('cards', '');
    expect(await follower.connect(test, member.headers)).toBe(200);
    await expect.poll(() => follower.known.size).toBe(cards.length);
    await removeMember();
    if (ON_MONGODB) await expect.poll(() => follower.known.size).toBe(0);
    await asServer('patch', `data/cards/${cards[0]!}`, { title: SECRET });
    await asServer('post', 'data/cards', { board: BOARD, title: SECRET });
    await expect.poll(() => follower.known.size).toBe(0);
    // What was stored before is told before: by now the secret would be there.
    await asServer('post', 'data/members', { board: 'another', user: member.id });
    await asServer('post', 'data/cards', { board: 'another', title: 'seen' });
    await expect.poll(() => follower.known.size).toBe(1);
    expect(JSON.stringify(follower.told)).not.toContain(SECRET);
    await follower.disconnect();
  });

  it('sees nothing by a link that was made before: the ticket of a stream', async () => {
    const { body } = await asMember('post', 'realtime/ticket');
    const { ticket } = body.data as unknown as { ticket: string };
    await removeMember();
    await asServer('post', 'data/cards', { board: BOARD, title: SECRET });
    const follower = openStreamFollower('cards', `ticket=${ticket}`);
    expect(await follower.connect(test, {})).toBe(200);
    await asServer('post', 'data/members', { board: 'another', user: member.id });
    await asServer('post', 'data/cards', { board: 'another', title: 'seen' });
    await expect.poll(() => follower.known.size).toBe(1);
    expect(JSON.stringify(follower.told)).not.toMatch(/card-|secret/);
    await follower.disconnect();
  });

  it.each([
    ['they are removed', () => removeMember()],
    ['the card moves to a board of others', () => moveCard(cards[0]!)],
  ])('gets no new link to a file of a card once %s, and an old one ends after ten minutes', async (_, lose) => {
    const path = await attachFile(cards[0]!);
    const old = await asMember('get', `storage/files/${path}/link`);
    expect(old.body).toMatchObject({ expiresIn: '10m' });
    const address = (old.body as { url: string }).url;
    await lose();
    const refused = await asMember('get', `storage/files/${path}/link`);
    const unknown = await asMember(
      'get',
      `storage/files/${path.replace(/^(.*)-[0-9a-f]{32}_/, `$1-${'0'.repeat(32)}_`)}/link`,
    );
    expect(refused.status).toBe(404);
    expect(withoutRequestId(refused)).toBe(withoutRequestId(unknown));
    const { body } = await asMember('post', 'storage/links', { paths: [path] });
    expect(body.data).toEqual({ links: [{ path, url: null }] });
    expect((await asMember('delete', 'storage/file', { path })).status).toBe(404);
    await expect(attachFile(cards[0]!)).rejects.toThrow('404');
    expect((await asServer('get', `storage/files/${path}/link`)).status).toBe(200);

    // What was given out before ends with its time, in caches too.
    aheadMs += 10 * 60_000 - 10_000;
    const late = await fetch(address);
    expect([late.status, late.headers.get('cache-control')]).toEqual([
      200,
      expect.stringMatching(/^private, max-age=\d{1,2}$/),
    ]);
    // Its end is a whole second.
    aheadMs += 12_000;
    expect((await fetch(address)).status).toBe(404);
  });

  it('cannot complete the upload to a card that was begun before', async () => {
    const begun = await asMember('post', 'storage/upload-request', {
      filename: 'plan.png',
      contentType: 'image/png',
      size: 4,
      attach: { collection: 'cards', id: cards[0]! },
    });
    expect(begun.status, begun.text).toBe(200);
    const { signedUrl, filePath } = begun.body as unknown as { signedUrl: string; filePath: string };
    await removeMember();
    await fetch(signedUrl, { method: 'PUT', headers: { 'content-type': 'image/png' }, body: 'byte' });
    const confirmed = await asMember('post', 'storage/upload-confirm', { filePath, size: 4 });
    expect(confirmed.status, confirmed.text).toBe(404);
    expect((await asServer('get', `storage/files/${filePath}/link`)).status).toBe(404);
  });

  it('changes nothing by writes and batches that come while it is being removed', async () => {
    const attempts = cards.map((id, n) =>
      n % 2 === 0
        ? asMember('patch', `data/cards/${id}`, { title: SECRET })
        : asMember('post', 'batch', {
            operations: [
              { op: 'update', collection: 'cards', id, body: { title: SECRET } },
              { op: 'update', collection: 'cards', id: cards[n - 1]!, body: { title: SECRET } },
            ],
          }),
    );
    const [, ...replies] = await Promise.all([removeMember(), ...attempts]);
    expect(replies.filter(({ status }) => ![200, 403, 404, 409].includes(status)).map(({ text }) => text)).toEqual([]);
    const before = await asServer('get', 'data/cards?limit=100&sort=_id');
    for (const [n, id] of cards.entries()) {
      expect((await asMember('patch', `data/cards/${id}`, { title: 'later' })).status, String(n)).toBe(404);
      expect((await asMember('delete', `data/cards/${id}`)).status).toBe(404);
    }
    const operations = cards.map((id) => ({ op: 'update', collection: 'cards', id, body: { title: 'later' } }));
    expect((await asMember('post', 'batch', { operations })).status).toBe(404);
    expect((await asMember('post', 'data/cards', { board: BOARD, title: 'later' })).status).toBe(403);
    const after = await asServer('get', 'data/cards?limit=100&sort=_id');
    expect(after.body.data).toEqual(before.body.data);
  });
});
