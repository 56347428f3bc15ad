import { beforeEach, describe, expect, it } from 'vitest';
import type { NewCollection } from '../world/collections.js';
import { listActs } from '../world/operators.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { buildOperator } from '../helpers/operator-client.js';
import { useTestApp } from '../helpers/use.js';

const NOBODY = 'f'.repeat(24);

let path: string;
let ids: string[];

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4', BSVC_RATE_LIMIT: 'off' } });
const { call } = await buildOperator(test);

beforeEach(async () => {
  const { project } = await buildProject(test.app);
  const fields: NewCollection['fields'] = [
    { name: 'title', type: 'String', required: true },
    { name: 'slug', type: 'String', unique: true },
  ];
  const collection = await buildCollection(test.app, project, { fields });
  ids = await placeDocuments(test.app, collection, [
    { title: 'one', slug: 'one' },
    { title: 'two', slug: 'two' },
    { title: 'gone', slug: 'gone', isDeleted: true, deletedAt: new Date() },
  ]);
  path = `/api/projects/${project._id.toHexString()}/collections/${collection.name}/documents`;
});

const dataOf = <T = Record<string, unknown>>(answer: { body: unknown }): T => (answer.body as { data: T }).data;
const codeOf = (answer: { body: unknown }) => (answer.body as { code?: string }).code;
const show = (id: string) => call('get', `${path}/${id}?include_deleted=true`);

describe('one document of a project, for operators', () => {
  it('is stored, shown, changed by its given fields alone, trashed and taken back', async () => {
    const stored = dataOf(await call('post', path, { title: 'new', slug: 'new' }).expect(201));
    const id = stored._id as string;
    expect(dataOf(await show(id).expect(200))).toEqual(stored);
    const changed = await call('patch', `${path}/${id}`, { title: 'changed' }).expect(200);
    expect(dataOf(changed)).toMatchObject({ _id: id, title: 'changed', slug: 'new' });
    await call('delete', `${path}/${id}`).expect(200);
    expect(dataOf(await show(id).expect(200))).toMatchObject({ isDeleted: true });
    expect(dataOf(await call('patch', `${path}/${id}/recover`).expect(200))).toMatchObject({ isDeleted: false });
    await call('delete', `${path}/${id}?permanent=true`).expect(200);
    await show(id).expect(404);
  });

  it('is changed with If-Match only where nobody has changed it meanwhile', async () => {
    const change = (match: string, title: string) =>
      call('patch', `${path}/${ids[0]!}`, { title }).set('If-Match', match);
    const known = dataOf(await show(ids[0]!)).updatedAt as string;
    const changed = await change(`"${known}"`, 'mine').expect(200);
    expect(codeOf(await change(`"${known}"`, 'late').expect(412))).toBe('CHANGED_MEANWHILE');
    expect(codeOf(await change(known, 'no ETag').expect(400))).toBe('INVALID_IF_MATCH');
    expect(dataOf(await show(ids[0]!))).toEqual(dataOf(changed));
  });

  it('names its version in every answer, and is trashed and deleted by it as it is changed', async () => {
    const stored = await call('post', path, { title: 'new', slug: 'new' }).expect(201);
    const at = `${path}/${dataOf(stored)._id as string}`;
    const changed = await call('patch', at, { title: 'newer' }).set('If-Match', stored.get('ETag')!).expect(200);
    const shown = await call('get', at).expect(200);
    for (const answer of [stored, changed, shown])
      expect(answer.get('ETag')).toBe(`"${dataOf(answer).updatedAt as string}"`);
    for (const late of [at, `${at}?permanent=true`]) {
      expect(codeOf(await call('delete', late).set('If-Match', stored.get('ETag')!).expect(412))).toBe(
        'CHANGED_MEANWHILE',
      );
      expect(codeOf(await call('delete', late).set('If-Match', 'newest').expect(400))).toBe('INVALID_IF_MATCH');
    }
    await call('delete', at).set('If-Match', shown.get('ETag')!).expect(200);
    const recovered = await call('patch', `${at}/recover`).expect(200);
    expect(recovered.get('ETag')).toBe(`"${dataOf(recovered).updatedAt as string}"`);
    await call('delete', `${at}?permanent=true`).set('If-Match', recovered.get('ETag')!).expect(200);
  });

  it('is checked as everywhere: fields, unique values, ids, the trash', async () => {
    expect(codeOf(await call('post', path, { slug: 'three' }).expect(400))).toBe('VALIDATION_FAILED');
    expect(codeOf(await call('post', path, { title: 'x', slug: 'one' }).expect(409))).toBe('DUPLICATE_VALUE');
    expect(codeOf(await call('patch', `${path}/${ids[1]!}`, { slug: 'one' }).expect(409))).toBe('DUPLICATE_VALUE');
    expect(codeOf(await call('patch', `${path}/${ids[1]!}`, { title: 7 }).expect(400))).toBe('VALIDATION_FAILED');
    expect(codeOf(await call('patch', `${path}/${ids[2]!}`, { title: 'x' }).expect(404))).toBe('DOCUMENT_NOT_FOUND');
    for (const method of ['get', 'patch', 'delete'] as const)
      expect(codeOf(await call(method, `${path}/nothing`, method === 'patch' ? {} : undefined))).toBe('INVALID_ID');
    await show(NOBODY).expect(404);
    expect(codeOf(await call('delete', `${path}/${ids[0]!}?permanent=perhaps`).expect(400))).toBe('INVALID_QUERY');
    await call('post', path, { title: 'x', slug: 'gone' }).expect(201);
    expect(codeOf(await call('patch', `${path}/${ids[2]!}/recover`).expect(409))).toBe('DUPLICATE_VALUE');
  });

  it('has its files, in the trash too, each with a link', async () => {
    const { project, secret } = await buildProject(test.app);
    const { name } = await buildCollection(test.app, project, { fields: [{ name: 'n', type: 'Number' }] });
    const headers = { 'x-api-key': secret };
    const stored = await fetch(`${test.url}/api/data/${name}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"n":1}',
    });
    const { _id: id } = (await stored.json()) as { _id: string };
    const at = `/api/projects/${project._id.toHexString()}/collections/${name}/documents/${id}`;
    const filesOf = async () => dataOf<{ items: Record<string, string>[] }>(await call('get', `${at}/files`)).items;
    expect(await filesOf()).toEqual([]);
    const form = new FormData();
    form.set('attach', JSON.stringify({ collection: name, id }));
    form.set('file', new File(['bytes'], 'plan.txt', { type: 'text/plain' }));
    expect((await fetch(`${test.url}/api/storage/upload`, { method: 'POST', headers, body: form })).status).toBe(201);
    for (const body of [undefined, {}]) {
      if (body) await call('delete', at).expect(200);
      const [file, ...others] = await filesOf();
      expect(file).toMatchObject({ name: 'plan.txt', visibility: 'attached', attachedTo: id, url: null });
      expect(others).toEqual([]);
      expect(await (await fetch(file!.link!)).text()).toBe('bytes');
    }
    expect((await call('get', `${at.slice(0, -24)}${NOBODY}/files`)).status).toBe(404);
  });

  it('is refused for end users, whose names begin with users', async () => {
    const users = path.replace(/collections\/[^/]+/, 'collections/users');
    for (const [method, rest, body] of [
      ['get', `/${NOBODY}`],
      ['get', `/${NOBODY}/files`],
      ['post', '', {}],
      ['patch', `/${NOBODY}`, { a: 1 }],
      ['delete', `/${NOBODY}`],
      ['patch', `/${NOBODY}/recover`],
      ['post', '/trash', { ids: [NOBODY] }],
      ['post', '/recover', { ids: [NOBODY] }],
    ] as const) {
      const answer = await call(method, `${users}${rest}`, body);
      expect([method, rest, answer.status, codeOf(answer)]).toEqual([method, rest, 403, 'USERS_BLOCKED']);
    }
  });

  it('cannot be given another owner', async () => {
    const { project } = await buildProject(test.app);
    const owned = await buildCollection(test.app, project, {
      fields: [{ name: 'userId', type: 'String' }],
      rls: { enabled: true, mode: 'private', ownerField: 'userId' },
    } as never);
    const [id] = await placeDocuments(test.app, owned, [{ userId: 'a'.repeat(24) }]);
    const own = `/api/projects/${project._id.toHexString()}/collections/${owned.name}/documents/${id!}`;
    expect(codeOf(await call('patch', own, { userId: 'b'.repeat(24) }).expect(403))).toBe('OWNER_IMMUTABLE');
  });

  it('stays out of the audit log, which tells the act and the id', async () => {
    await call('patch', `${path}/${ids[0]!}`, { title: 'nobody’s business' }).expect(200);
    const [act] = await listActs(test.app, { limit: 1 });
    expect(act).toMatchObject({ action: 'data update', outcome: 'done', input: { document: ids[0] } });
    expect(JSON.stringify(act)).not.toContain('business');
  });
});

describe('an aggregation of a project, for operators', () => {
  it('runs over what is not in the trash, and is refused as for everybody', async () => {
    const run = (pipeline: object[], query = '') => call('post', `${path}/aggregate${query}`, { pipeline });
    const count = [{ $count: 'all' }];
    expect(dataOf(await run(count).expect(200))).toEqual([{ all: 2 }]);
    expect(dataOf(await run(count, '?include_deleted=true').expect(200))).toEqual([{ all: 3 }]);
    expect(codeOf(await run([{ $out: 'elsewhere' }]).expect(400))).toBe('BLOCKED_STAGE');
    expect(codeOf(await run([{ $lookup: { from: 'users', pipeline: [], as: 'all' } }]).expect(400))).toBe(
      'USERS_BLOCKED',
    );
    const ofUsers = path.replace(/collections\/[^/]+/, 'collections/users');
    expect(codeOf(await call('post', `${ofUsers}/aggregate`, { pipeline: count }).expect(403))).toBe('USERS_BLOCKED');
  });
});

describe('many documents at once', () => {
  it('are trashed and taken back each for itself, in the order of the ids', async () => {
    const trashed = dataOf(await call('post', `${path}/trash`, { ids: [...ids, NOBODY, ids[0]] }).expect(200));
    expect(trashed).toEqual({
      done: [ids[0], ids[1]],
      refused: [ids[2], NOBODY].map((id) => ({
        id,
        code: 'DOCUMENT_NOT_FOUND',
        message: 'There is no document with this id in the collection',
      })),
    });
    await call('post', path, { title: 'again', slug: 'one' }).expect(201);
    const recovered = dataOf<{ done: string[]; refused: object[] }>(
      await call('post', `${path}/recover`, { ids }).expect(200),
    );
    expect(recovered.done).toEqual([ids[1], ids[2]]);
    expect(recovered.refused).toMatchObject([{ id: ids[0], code: 'DUPLICATE_VALUE' }]);
  });

  it.each([[[]], [['x']], [Array(501).fill(NOBODY)], ['all']])('refuse %j as ids', async (list) => {
    for (const act of ['trash', 'recover'])
      expect(codeOf(await call('post', `${path}/${act}`, { ids: list }).expect(400))).toBe('VALIDATION_FAILED');
  });
});

describe('the history of a document, for operators', () => {
  interface History {
    isKept: boolean;
    since: string | null;
    items: { change: string; before: { title?: string; isDeleted: boolean } | null; isPartial: boolean }[];
    next: number | null;
  }
  const history = async (id: string, query = ''): Promise<History> =>
    dataOf<History>(await call('get', `${path}/${id}/history${query}`).expect(200));
  const keep = () => call('put', `${path.replace(/documents$/, 'changes')}`, { on: true }).expect(200);

  it('is not kept before somebody wants it, and reading it begins nothing', async () => {
    for (const _twice of [1, 2]) {
      expect(await history(ids[0]!)).toEqual({ isKept: false, since: null, items: [], next: null });
      await call('patch', `${path}/${ids[0]!}`, { title: 'changed' }).expect(200);
    }
  });

  it('has the changes of this document alone, newest first, in pages, with what was before', async () => {
    await keep();
    const { _id: id } = dataOf<{ _id: string }>(await call('post', path, { title: 'v0', slug: 'v' }).expect(201));
    for (const title of ['v1', 'v2']) {
      await call('patch', `${path}/${id}`, { title }).expect(200);
      await call('patch', `${path}/${ids[0]!}`, { title }).expect(200);
    }
    await call('delete', `${path}/${id}`).expect(200);
    const { isKept, since, items, next } = await history(id);
    expect({ isKept, next }).toEqual({ isKept: true, next: null });
    expect(since).toMatch(/^\d{4}-/);
    const paged: History['items'] = [];
    for (let before: number | null | '' = ''; before !== null;) {
      const page: History = await history(id, `?limit=3${before === '' ? '' : `&before=${before}`}`);
      paged.push(...page.items);
      before = page.next;
    }
    expect(paged).toEqual(items);
    expect(items.length).toBeLessThanOrEqual(4);
    // Processes on a MongoDB notice within a second that changes are kept now, and changes at once may share an entry.
    expect(items.length).toBeGreaterThan(0);
    // On a MongoDB the log knows when something changed, and not what was before.
    if (!test.app.db.changeLogs) return;
    expect(items.map(({ change, before }) => [change, before?.title ?? null])).toEqual([
      ['changed', 'v2'],
      ['changed', 'v1'],
      ['changed', 'v0'],
      ['created', null],
    ]);
    expect(JSON.stringify(items)).not.toContain('_bsvc');
  });

  it('is of documents that are there, and of no users', async () => {
    await keep();
    expect(codeOf(await call('get', `${path}/${NOBODY}/history`).expect(404))).toBe('DOCUMENT_NOT_FOUND');
    expect(codeOf(await call('get', `${path}/x/history`).expect(400))).toBe('INVALID_ID');
    await call('delete', `${path}/${ids[0]!}?permanent=true`).expect(200);
    await call('get', `${path}/${ids[0]!}/history`).expect(404);
    const users = path.replace(/collections\/[^/]+/, 'collections/users');
    expect(codeOf(await call('get', `${users}/${ids[1]!}/history`).expect(403))).toBe('USERS_BLOCKED');
    expect(codeOf(await call('get', `${path}/${ids[1]!}/history?before=-1`).expect(400))).toBe('INVALID_QUERY');
  });
});
