import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type Collection, documentsName, parseFieldSpec } from '../world/collections.js';
import { importDocuments, purgeTrash, removeExpiredDocuments } from '../world/documents.js';
import { projectStore } from '../world/stored.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { eventually } from '../helpers/eventually.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../helpers/user-client.js';
import { MAX_USER_BYTES } from '../world/users.js';

const LIMIT = 100_000;
const DOCUMENT = { text: 'x'.repeat(10_000) };

const test = await useTestApp();
const shop = await buildProject(test.app);
await projectStore(test.app).updateOne({ _id: shop.project._id }, { $set: { limits: { database: LIMIT } } });
const items = await buildCollection(test.app, shop.project, { name: 'items' });

const send = openDataClient(test, serverOf(shop));

const FULL = {
  code: 'QUOTA_EXCEEDED',
  message: 'The database quota of the project is used up. Delete documents permanently, or upgrade the plan',
};

describe('the database limit of a plan', () => {
  it('is never overrun, and is told by every way to add documents', async () => {
    const ids: string[] = [];
    for (;;) {
      const reply = await send('post', 'items', DOCUMENT);
      if (reply.status === 403) {
        expect(reply.body).toMatchObject(FULL);
        break;
      }
      expect(reply.status).toBe(201);
      ids.push((reply.body as { _id: string })._id);
    }
    const { bytes: used } = await test.app.db.measure(documentsName(items));
    expect(used).toBeLessThanOrEqual(LIMIT);
    expect(used).toBeGreaterThan(LIMIT - 2 * DOCUMENT.text.length);

    expect((await send('post', 'items/bulk', [DOCUMENT, DOCUMENT]).expect(403)).body).toMatchObject(FULL);
    await expect(importDocuments(test.app, items, [DOCUMENT])).rejects.toMatchObject(FULL);
    for (const method of ['put', 'patch'] as const) {
      expect((await send(method, `items/${ids[0]!}`, { more: DOCUMENT.text }).expect(403)).body).toMatchObject(FULL);
      await send(method, `items/${ids[0]!}`, { seen: true }).expect(200);
    }
    const keyed = await send('post', 'items', DOCUMENT).set('idempotency-key', 'k1').expect(403);
    expect(keyed.body).toMatchObject(FULL);
    const { call } = await buildOperator(test);
    const path = `/api/projects/${shop.project._id.toHexString()}/collections/items/documents`;
    expect((await call('post', path, DOCUMENT).expect(403)).body).toMatchObject(FULL);
    const more = { more: DOCUMENT.text };
    expect((await call('patch', `${path}/${ids[0]!}`, more).expect(403)).body).toMatchObject(FULL);
    expect((await test.app.db.measure(documentsName(items))).bytes).toBeLessThanOrEqual(LIMIT);

    await send('delete', `items/${ids[1]!}?permanent=true`).expect(200);
    await send('delete', `items/${ids[2]!}?permanent=true`).expect(200);
    await eventually('there is room again', async () => (await send('post', 'items', DOCUMENT)).status === 201);
  });

  it('is told before what a rule with sets refuses, and after what one without them does', async () => {
    const { app } = test;
    const full = await buildProject(app);
    await projectStore(app).updateOne(
      { _id: full.project._id },
      { $set: { limits: { database: 3 * DOCUMENT.text.length } } },
    );
    const build = (name: string, specs: string[], more: object): Promise<Collection> =>
      buildCollection(app, full.project, { name, fields: specs.map(parseFieldSpec), ...more });
    await build('members', ['team:String!', 'user:String!'], { access: 'server-only' });
    const team = 'doc.team in members[user = user.id].team';
    await build('cards', ['team:String', 'text:String'], { rules: { read: team, create: team } });
    await build('notes', ['by:String', 'text:String'], { rules: { read: 'user', create: 'doc.by = user.id' } });
    const { accessToken } = (await openUserClient(test, full.publishable).signUp()).body as { accessToken: string };
    const headers = { 'x-api-key': full.publishable, ...bearer(accessToken) };
    const insert = (name: string, text: string): request.Test =>
      request(test.server).post(`/api/data/${name}`).set(headers).send({ text });
    for (const name of ['cards', 'notes'])
      expect((await insert(name, 'a')).body).toMatchObject({ code: 'RULE_REFUSED' });
    const large = 'x'.repeat(4 * DOCUMENT.text.length);
    expect((await insert('cards', large)).body).toMatchObject({ code: 'QUOTA_EXCEEDED' });
    expect((await insert('notes', large)).body).toMatchObject({ code: 'RULE_REFUSED' });
  });

  it.each([true, false])('has room again once documents have expired for good: %s', async (permanent) => {
    const clock = createFakeClock();
    const own = await useTestApp({ clock });
    const { project, secret } = await buildProject(own.app);
    await projectStore(own.app).updateOne({ _id: project._id }, { $set: { limits: { database: LIMIT } } });
    const fields = ['text:String', 'until:Date'].map(parseFieldSpec);
    const { name } = await buildCollection(own.app, project, { fields, expire: { field: 'until', permanent } });
    const until = new Date(clock.now() + 1000).toISOString();
    const insert = async (): Promise<number> =>
      (
        await request(own.server)
          .post(`/api/data/${name}`)
          .set('x-api-key', secret)
          .send({ ...DOCUMENT, until })
      ).status;
    while ((await insert()) === 201);
    clock.advance(2000);
    expect(await insert()).toBe(403);
    expect(await removeExpiredDocuments(own.app)).toBeGreaterThan(0);
    if (!permanent) {
      // What is in the trash counts.
      clock.advance(60_000);
      expect(await insert()).toBe(403);
      clock.advance(31 * 86_400_000);
      expect(await purgeTrash(own.app)).toBeGreaterThan(0);
    }
    clock.advance(60_000);
    await eventually('there is room again', async () => (await insert()) === 201);
  });

  it('counts users like documents, and lets those of a full project be changed, ended and removed', async () => {
    const { app } = test;
    const full = await buildProject(app);
    const limits = { database: 3 * DOCUMENT.text.length };
    await projectStore(app).updateOne({ _id: full.project._id }, { $set: { limits } });
    await buildCollection(app, full.project, { name: 'items' });
    const users = openUserClient(test, full.publishable);
    const email = buildEmail();
    const { user, accessToken } = (await users.signUp({ email })).body as {
      user: { _id: string };
      accessToken: string;
    };
    const insert = (): request.Test =>
      request(test.server).post('/api/data/items').set('x-api-key', full.secret).send(DOCUMENT);
    await eventually('the project is full', async () => (await insert()).status === 403);
    const name = 'x'.repeat(15_000);
    const signUp = await users.signUp({ email: buildEmail(), name });
    expect([signUp.status, signUp.body]).toEqual([403, expect.objectContaining(FULL)]);
    const profile = (body: object): request.Test => users.send('patch', '/update-profile', body, bearer(accessToken));
    expect((await profile({ name })).body).toMatchObject(FULL);
    await profile({ name: 'short' }).expect(200);
    const { call } = await buildOperator(test);
    const path = `/api/projects/${full.project._id.toHexString()}/users`;
    const made = { email: buildEmail(), password: PASSWORD, name };
    expect((await call('post', path, made).expect(403)).body).toMatchObject(FULL);
    await call('post', `${path}/${user._id}/disable`).expect(200);
    await call('delete', `${path}/${user._id}`).expect(200);
  });

  it('bounds the fields of one user, whoever sets them', async () => {
    const shown = await buildProject(test.app);
    const users = openUserClient(test, shown.publishable);
    const name = 'x'.repeat(MAX_USER_BYTES);
    expect((await users.signUp({ email: buildEmail(), name })).status).toBe(413);
    const { accessToken } = (await users.signUp({ email: buildEmail(), name: name.slice(2_000) })).body as {
      accessToken: string;
    };
    const change = (body: object): request.Test => users.send('patch', '/update-profile', body, bearer(accessToken));
    await change({ name }).expect(413);
    await change({ name: name.slice(1_000) }).expect(200);
  });

  it('does not concern other projects', async () => {
    const other = await buildProject(test.app);
    await buildCollection(test.app, other.project, { name: 'items' });
    await request(test.server).post('/api/data/items').set('x-api-key', other.secret).send(DOCUMENT).expect(201);
  });
});
