import { ObjectId } from 'bson';
import supertest from 'supertest';
import { afterAll, describe, expect, it } from 'vitest';
import { setChanges } from '../world/collections.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { idIn, openDataClient, serverOf, type DataClient, userOf } from '../helpers/data-client.js';
import { openStreamClient, type StreamClient } from '../helpers/event-stream.js';
import { eventually } from '../helpers/eventually.js';
import { useTestApp } from '../helpers/use.js';

const ANN = new ObjectId().toHexString();
const BOB = new ObjectId().toHexString();
const SECRET_NOTE = 'for nobody else';

const open: StreamClient[] = [];

const test = await useTestApp();
const owner = await buildProject(test.app);
const text = (name: string) => ({ name, type: 'String' as const });
const ref = (name: string, to: string) => ({ name, type: 'Ref' as const, ref: to });
await build('boards', { fields: [text('title')] });
await build('notes', { fields: [text('text'), text('userId')], rls: { mode: 'private', ownerField: 'userId' } });
await build('cards', {
  fields: [text('title'), { name: 'n', type: 'Number' as const }, ref('board', 'boards'), ref('note', 'notes')],
});
afterAll(async () => {
  for (const client of open) client.close();
});

async function build(name: string, input: Parameters<typeof buildCollection>[2]): Promise<void> {
  await buildCollection(test.app, owner.project, { name, ...input });
  await setChanges(test.app, owner.project._id, name, { on: true });
}

const secret = () => serverOf(owner);
const server = openDataClient(test, secret);
const signedIn = (userId: string) => userOf(test, owner, userId);

const send = (...request: Parameters<DataClient>): Promise<string> => idIn(server(...request));

async function follow(subscription: object, headers: Record<string, string> = secret()): Promise<StreamClient> {
  const client = await openStreamClient(test, {
    headers,
    body: { subscriptions: [{ collection: 'cards', ...subscription }] },
  });
  open.push(client);
  if (client.status === 200) await client.until(({ event }) => event === 'ready');
  return client;
}

type Populated = { title?: string; text?: string } | string | undefined;
const shownOf = (client: StreamClient, id: string, field: string): unknown => {
  const value = client.known().get(id)?.[field] as Populated;
  return typeof value === 'object' ? (value.title ?? value.text) : value;
};

describe('a followed document that is populated', () => {
  it.each([[{}], [{ limit: 5 }], [{ fields: ['board'], limit: 5, sort: 'n' }]])(
    'is sent again when the document that it refers to changes (%j)',
    async (asked) => {
      const board = await send('post', 'boards', { title: 'old' });
      const card = await send('post', 'cards', { board, title: 'card' });
      const client = await follow({ ...asked, populate: ['board'] });
      expect(shownOf(client, card, 'board')).toBe('old');
      await send('patch', `boards/${board}`, { title: 'new' });
      await eventually('the new title', () => shownOf(client, card, 'board') === 'new');
      await send('patch', `cards/${card}`, { n: 1 });
      await send('delete', `boards/${board}`);
      await eventually('the id alone', () => shownOf(client, card, 'board') === board);
      await send('patch', `boards/${board}/recover`);
      await eventually('the board again', () => shownOf(client, card, 'board') === 'new');
      await send('delete', `cards/${card}?permanent=true`);
      await eventually('it is gone', () => !client.known().has(card));
      expect(client.events.some(({ event }) => event === 'reset' || event === 'end')).toBe(false);
    },
  );

  it.each([[{}], [{ limit: 5 }]])('is sent when its follower comes back, by a stream or a page (%j)', async (asked) => {
    const board = await send('post', 'boards', { title: 'before' });
    const card = await send('post', 'cards', { board });
    const first = await follow({ ...asked, populate: ['board'] });
    const since = first.cursor()!;
    first.close();
    const page = async (cursor: string) => {
      const query = `populate=board&since=${encodeURIComponent(cursor)}${'limit' in asked ? '&limit=5&sort=-createdAt' : ''}`;
      const { status, body } = await supertest(test.server).get(`/api/data/cards/changes?${query}`).set(secret());
      expect(status).toBe(200);
      return (body as { data: { cursor: string; items: { id: string; document: { board: { title: string } } }[] } })
        .data;
    };
    const quiet = await page(since);
    expect(quiet.items).toEqual([]);
    await send('patch', `boards/${board}`, { title: 'while it was away' });
    const back = await follow({ ...asked, populate: ['board'], since });
    expect(shownOf(back, card, 'board')).toBe('while it was away');
    const { items } = await page(quiet.cursor);
    expect(items.find(({ id }) => id === card)!.document.board.title).toBe('while it was away');
  });

  it('shows each follower only what the rules of the other collection show them', async () => {
    const note = await send('post', 'notes', { text: SECRET_NOTE, userId: ANN });
    const card = await send('post', 'cards', { note });
    const [ann, bob] = [
      await follow({ populate: ['note'] }, signedIn(ANN)),
      await follow({ populate: ['note'] }, signedIn(BOB)),
    ];
    expect([ann, bob].map((client) => shownOf(client, card, 'note'))).toEqual([SECRET_NOTE, note]);
    await send('patch', `notes/${note}`, { text: `${SECRET_NOTE} either` });
    await eventually('its owner is told', () => shownOf(ann, card, 'note') === `${SECRET_NOTE} either`);
    await send('patch', `cards/${card}`, { title: 'told to both' });
    await eventually('both are told', () => [ann, bob].every((client) => client.known().get(card)?.title));
    expect(shownOf(bob, card, 'note')).toBe(note);
    expect(bob.text()).not.toContain(SECRET_NOTE);
  });

  it('shows it no longer to who has lost the right to read it, within the look at tokens', async () => {
    const text = (name: string) => ({ name, type: 'String' as const });
    await build('members', { fields: [text('user'), text('team')], rules: 'server-only' });
    await build('plans', {
      fields: [text('team'), text('text')],
      rules: { read: 'doc.team in members[user = user.id].team' },
    });
    await build('tasks', { fields: [{ name: 'plan', type: 'Ref', ref: 'plans' }], rls: null });
    const member = await send('post', 'members', { user: ANN, team: 'a' });
    const plan = await send('post', 'plans', { team: 'a', text: 'of the team' });
    const task = await send('post', 'tasks', { plan });
    const [ann, bob] = await Promise.all(
      [ANN, BOB].map((user) => follow({ collection: 'tasks', populate: ['plan'], limit: 3 }, signedIn(user))),
    );
    expect([ann, bob].map((client) => shownOf(client!, task, 'plan'))).toEqual(['of the team', plan]);
    await send('delete', `members/${member}`);
    await eventually('the id alone', () => shownOf(ann!, task, 'plan') === plan);
    await send('patch', `plans/${plan}`, { text: 'of others' });
    await send('post', 'members', { user: BOB, team: 'a' });
    await eventually('the new member is shown it', () => shownOf(bob!, task, 'plan') === 'of others');
    expect(ann!.text()).not.toContain('of others');
  });

  it.each([
    [{ populate: ['title'] }, 400, 'populate: "title" is not a declared Ref field'],
    [{ filter: 'populate=board' }, 400, 'populate is no filter: it stands beside it'],
    [{ populate: ['board', 'note', 'board'] }, 400, undefined],
  ])('is refused as in lists: %j', async (asked, status, message) => {
    const client = await follow(asked);
    expect(client.status).toBe(status);
    if (message) expect(client.body).toMatchObject({ code: 'INVALID_QUERY', message });
  });

  it('asks for a user where the other collection does, and for its changes to be kept', async () => {
    const headers = { 'x-api-key': owner.publishable };
    expect((await follow({ populate: ['note'] }, headers)).status).toBe(401);
    await setChanges(test.app, owner.project._id, 'boards', { on: false });
    const client = await follow({ populate: ['board'] });
    expect([client.status, client.body.code]).toEqual([409, 'CHANGES_OFF']);
    await setChanges(test.app, owner.project._id, 'boards', { on: true });
  });
});
