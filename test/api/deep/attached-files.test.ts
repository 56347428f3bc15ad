import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { type Collection, defaultUsersCollection, documentsName, parseFieldSpec } from '../../world/collections.js';
import { removeAttachedJob, sweepAttachedJob, REMOVE_ATTACHED } from '../../world/jobs.js';
import { measureStorage, setBucket } from '../../world/projects.js';
import { jobStore } from '../../world/stored.js';
import { signAccessToken } from '../../world/users.js';
import { buildCollection, buildProject, storedDocuments } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openRandom } from '../../helpers/random.js';
import { openS3Double } from '../../helpers/s3-double.js';
import { openSeed } from '../../helpers/seed.js';
import { listStoredFiles, putSigned } from '../../helpers/storage-client.js';
import { use, useTestApp } from '../../helpers/use.js';

const MEMBERS = 'user.id in doc.members';
const BOARD_RULES = { read: MEMBERS, create: MEMBERS, update: 'doc.owner = user.id', delete: 'doc.owner = user.id' };

const clock = createFakeClock(Date.now());

type Headers = Record<string, string>;
interface Answer {
  status: number;
  body: Record<string, string | undefined>;
}

const buildBoards = (): Promise<Collection> =>
  buildCollection(test.app, owner.project, {
    fields: ['title:String', 'owner:String', 'members:Array(String)'].map(parseFieldSpec),
    rules: BOARD_RULES,
  });

const test = await useTestApp({ clock, settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
const owner = await buildProject(test.app);
/** Ada owns the boards, Bob reads them, Cleo is nobody there. */
const people = { ada: await addUser(), bob: await addUser(), cleo: await addUser() };
const boards = await buildBoards();

async function addUser(): Promise<string> {
  const id = new ObjectId();
  const users = test.app.db.collection(documentsName(defaultUsersCollection(owner.project._id)));
  await users.insertOne({ _id: id, email: `${id.toHexString()}@example.test`, isDeleted: false, _bsvc: {} } as never);
  return id.toHexString();
}

const server = (): Headers => ({ 'x-api-key': owner.secret });
const guest = (): Headers => ({ 'x-api-key': owner.publishable });
const as = (user: string): Headers => ({
  ...guest(),
  authorization: `Bearer ${signAccessToken(test.app, owner.project, user, 600_000)}`,
});

async function send(who: Headers, method: string, path: string, body?: object): Promise<Answer> {
  const isForm = body instanceof FormData;
  const reply = await fetch(`${test.url}/api/${path}`, {
    method,
    headers: { ...who, ...(body && !isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : body && JSON.stringify(body),
  });
  return { status: reply.status, body: (await reply.json()) as Answer['body'] };
}

async function addBoard(members: string[] = [people.ada, people.bob], collection = boards): Promise<string> {
  const body = { title: 'b', owner: people.ada, members };
  return (await send(server(), 'POST', `data/${collection.name}`, body)).body._id!;
}

function form(fields: Record<string, string>, bytes = 'the bytes'): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  data.set('file', new File([bytes], 'plan.png', { type: 'image/png' }));
  return data;
}
const attach = (who: Headers, id: string, collection = boards): Promise<Answer> =>
  send(who, 'POST', 'storage/upload', form({ attach: JSON.stringify({ collection: collection.name, id }) }));
const link = (who: Headers, path: string): Promise<Answer> => send(who, 'GET', `storage/files/${path}/link`);
const codeOf = ({ status, body }: Answer): unknown[] => [status, body.code];
const usedBytes = async (): Promise<number> => (await measureStorage(test.app, owner.project)).bytes;
const kept = async (): Promise<string[]> => (await listStoredFiles(test.dataDir)).filter((path) => path.includes('/x'));
const job = { signal: new AbortController().signal, stopping: new AbortController().signal } as never;

describe('a file that belongs to a document', () => {
  it('is read by links, by whoever reads the document, and in no other way', async () => {
    const id = await addBoard();
    const { status, body } = await attach(as(people.ada), id);
    expect([status, body]).toEqual([
      201,
      {
        ...{ message: 'File uploaded', provider: 'internal', url: null, visibility: 'attached' },
        path: expect.stringMatching(new RegExp(`/x${boards._id.toHexString()}-${id}-[0-9a-f]{32}_plan\\.png$`)),
      },
    ]);
    const path = body.path!;
    expect((await fetch(`${test.url}/files/${path}`)).status).toBe(404);
    for (const [who, expected] of [
      [server(), [200, undefined]],
      [as(people.ada), [200, undefined]],
      [as(people.bob), [200, undefined]],
      [as(people.cleo), [404, 'FILE_NOT_FOUND']],
      [guest(), [404, 'FILE_NOT_FOUND']],
    ] as const) {
      expect(codeOf(await link(who, path))).toEqual(expected);
      const [found] = (
        (await send(who, 'POST', 'storage/links', { paths: [path] })).body as unknown as {
          data: { links: { url: string | null }[] };
        }
      ).data.links;
      expect(found!.url === null).toBe(expected[0] === 404);
    }
    const given = await link(as(people.bob), path);
    expect(given.body).toEqual({ url: expect.stringContaining(`/files/${path}?expires=`), expiresIn: '10m' });
    const url = given.body.url!;
    const whole = await fetch(url);
    expect([whole.status, whole.headers.get('cache-control'), await whole.text()]).toEqual([
      200,
      'private, max-age=300',
      'the bytes',
    ]);
    const part = await fetch(url, { headers: { range: 'bytes=4-6' } });
    expect([part.status, await part.text()]).toEqual([206, 'byt']);
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.headers.get('cache-control')]).toEqual([
      ...[200, '9', 'private, max-age=300'],
    ]);
    expect((await fetch(url, { headers: { 'if-none-match': whole.headers.get('etag')! } })).status).toBe(304);

    // Guessed, forged, of another file, used up.
    const other = (await attach(server(), id)).body.path!;
    const forged = [
      url.replace(/signature=.{4}/, 'signature=AAAA'),
      url.replace(/expires=\d+/, 'expires=99999999999'),
      url.replace(path, other),
      url.replace(/[?].*/, '?signature='),
      `${url}&expires=99999999999`.replace('expires=', 'x='),
    ];
    for (const wrong of forged) {
      expect((await fetch(wrong)).status, wrong).toBe(404);
      expect((await fetch(wrong, { method: 'HEAD' })).status, wrong).toBe(404);
    }
    clock.advance(10 * 60_000 + 1_000);
    expect((await fetch(url)).status).toBe(404);
    expect((await link(as(people.bob), path)).status).toBe(200);
  });

  it('is uploaded, confirmed and deleted by whoever may update the document', async () => {
    const id = await addBoard();
    expect(codeOf(await attach(as(people.bob), id))).toEqual([403, 'RULE_REFUSED']);
    expect(codeOf(await attach(as(people.cleo), id))).toEqual([404, 'DOCUMENT_NOT_FOUND']);
    expect(codeOf(await attach(guest(), id))).toEqual([403, 'SECRET_KEY_REQUIRED']);
    expect(codeOf(await send(as(people.ada), 'POST', 'storage/upload', form({})))).toEqual([
      403,
      'SECRET_KEY_REQUIRED',
    ]);
    expect(codeOf(await attach(server(), new ObjectId().toHexString()))).toEqual([404, 'DOCUMENT_NOT_FOUND']);
    const to = (collection: string, target: string): string => JSON.stringify({ collection, id: target });
    for (const [fields, code] of [
      [{ attach: to('nowhere', id) }, 'COLLECTION_NOT_FOUND'],
      [{ attach: to('users', id) }, 'USERS_BLOCKED'],
      [{ attach: to(boards.name, 'x') }, 'INVALID_ID'],
      [{ attach: 'x' }, 'INVALID_BODY'],
      [{ attach: '{"id":"x"}' }, 'VALIDATION_FAILED'],
      [{ attach: to(boards.name, id), visibility: 'private' }, 'INVALID_BODY'],
      [{ visibility: 'secret' }, 'INVALID_BODY'],
    ] as [Record<string, string>, string][]) {
      expect((await send(server(), 'POST', 'storage/upload', form(fields))).body.code, JSON.stringify(fields)).toBe(
        code,
      );
    }
    const late = form({});
    late.set('attach', to(boards.name, id));
    expect(codeOf(await send(server(), 'POST', 'storage/upload', late))).toEqual([400, 'INVALID_BODY']);

    const wanted = { filename: 'a.png', contentType: 'image/png', size: 3, attach: { collection: boards.name, id } };
    expect(codeOf(await send(as(people.bob), 'POST', 'storage/upload-request', wanted))).toEqual([403, 'RULE_REFUSED']);
    const grant = (await send(as(people.ada), 'POST', 'storage/upload-request', wanted)).body;
    expect((await putSigned(grant.signedUrl!, 'abc', 'image/png')).status).toBe(200);
    const filePath = grant.filePath!;
    const confirm = (who: Headers): Promise<Answer> =>
      send(who, 'POST', 'storage/upload-confirm', { filePath, size: 3 });
    expect(codeOf(await confirm(as(people.bob)))).toEqual([403, 'RULE_REFUSED']);
    expect(codeOf(await confirm(as(people.cleo)))).toEqual([404, 'FILE_NOT_FOUND']);
    expect((await link(server(), filePath)).status).toBe(404);
    expect((await confirm(as(people.ada))).body).toMatchObject({ url: null, visibility: 'attached', path: filePath });
    expect((await link(as(people.bob), filePath)).status).toBe(200);

    const remove = (who: Headers): Promise<Answer> => send(who, 'DELETE', 'storage/file', { path: filePath });
    expect(codeOf(await remove(as(people.bob)))).toEqual([403, 'RULE_REFUSED']);
    expect(codeOf(await remove(as(people.cleo)))).toEqual([404, 'FILE_NOT_FOUND']);
    expect((await remove(as(people.ada))).status).toBe(200);
    expect((await link(server(), filePath)).status).toBe(404);
  });

  it('is away while the document is in the trash, and goes with it for good', async () => {
    const before = await usedBytes();
    const id = await addBoard();
    const path = (await attach(as(people.ada), id)).body.path!;
    const url = (await link(as(people.ada), path)).body.url!;
    expect((await send(as(people.ada), 'DELETE', `data/${boards.name}/${id}`)).status).toBe(200);
    expect([(await link(as(people.ada), path)).status, (await link(server(), path)).status]).toEqual([404, 404]);
    // Nor does a link work that was given before.
    const downloads = async (): Promise<number[]> => {
      const statuses: number[] = [];
      for (const method of ['GET', 'HEAD']) statuses.push((await fetch(url, { method })).status);
      return statuses;
    };
    expect(await downloads()).toEqual([404, 404]);
    await sweepAttachedJob.run(test.app, {}, job);
    expect((await send(as(people.ada), 'PATCH', `data/${boards.name}/${id}/recover`)).status).toBe(200);
    expect((await link(as(people.ada), path)).status).toBe(200);
    expect(await downloads()).toEqual([200, 200]);

    expect((await send(as(people.ada), 'DELETE', `data/${boards.name}/${id}?permanent=true`)).status).toBe(200);
    expect(await downloads()).toEqual([404, 404]);
    expect((await link(server(), path)).status).toBe(404);
    const [asked] = await jobStore(test.app).find({ name: REMOVE_ATTACHED.name }).toArray();
    expect(asked!.payload).toEqual({
      projectId: owner.project._id.toHexString(),
      collectionId: boards._id.toHexString(),
      id,
    });
    await removeAttachedJob.run(test.app, asked!.payload as never, job);
    expect((await fetch(url)).status).toBe(404);
    expect(await usedBytes()).toBe(before);
    expect((await kept()).some((name) => name.includes(id))).toBe(false);
  });

  it('is listed with its document for those who may read that, and for nobody else', async () => {
    const id = await addBoard();
    const path = (await attach(as(people.ada), id)).body.path!;
    const list = (who: Headers, name = boards.name, of = id) => send(who, 'GET', `storage/attached/${name}/${of}`);
    for (const who of [server(), as(people.ada), as(people.bob)]) {
      const { status, body } = await list(who);
      const { items } = body.data as unknown as { items: { path: string; url: string }[] };
      expect([status, items]).toMatchObject([200, [{ path, name: 'plan.png', contentType: 'image/png', size: 9 }]]);
      expect(await (await fetch(items[0]!.url)).text()).toBe('the bytes');
    }
    for (const [who, expected] of [
      [as(people.cleo), 404],
      [guest(), 401],
      [{}, 401],
    ] as const) {
      const [listed, got] = [await list(who), await send(who, 'GET', `data/${boards.name}/${id}`)];
      expect([listed.status, listed.body.code]).toEqual([expected, got.body.code]);
    }
    expect(codeOf(await list(server(), 'users'))).toEqual([403, 'USERS_BLOCKED']);
    expect(codeOf(await list(server(), 'nowhere'))).toEqual([404, 'COLLECTION_NOT_FOUND']);
    expect(codeOf(await list(server(), boards.name, 'x'))).toEqual([400, 'INVALID_ID']);
    const empty = await list(as(people.ada), boards.name, await addBoard());
    expect(empty.body.data).toEqual({ items: [] });
    expect((await send(as(people.ada), 'DELETE', `data/${boards.name}/${id}`)).status).toBe(200);
    expect(codeOf(await list(as(people.ada)))).toEqual([404, 'DOCUMENT_NOT_FOUND']);
  });

  it('does not belong to another document that comes under the same id', async () => {
    const collection = await buildCollection(test.app, owner.project, {
      fields: ['title:String', 'owner:String', 'members:Array(String)'].map(parseFieldSpec),
      rules: { ...BOARD_RULES, read: 'doc.owner = user.id', create: 'doc.owner = user.id' },
    });
    const id = await addBoard(undefined, collection);
    const path = (await attach(as(people.ada), id, collection)).body.path!;
    const url = (await link(as(people.ada), path)).body.url!;
    expect((await send(as(people.ada), 'DELETE', `data/${collection.name}/${id}?permanent=true`)).status).toBe(200);
    clock.advance(1);
    const taken = { _id: id, title: 'mine now', owner: people.cleo };
    expect((await send(as(people.cleo), 'POST', `data/${collection.name}`, taken)).status).toBe(201);
    for (const who of [as(people.cleo), server()])
      expect(codeOf(await link(who, path))).toEqual([404, 'FILE_NOT_FOUND']);
    const remove = await send(as(people.cleo), 'DELETE', 'storage/file', { path });
    expect(codeOf(remove)).toEqual([404, 'FILE_NOT_FOUND']);
    const own = (await attach(as(people.cleo), id, collection)).body.path!;

    const asked = await jobStore(test.app).findOne({ name: REMOVE_ATTACHED.name, 'payload.id': id });
    await removeAttachedJob.run(test.app, asked!.payload as never, job);
    expect((await fetch(url)).status).toBe(404);
    expect((await link(as(people.cleo), own)).status).toBe(200);
    expect((await kept()).filter((name) => name.includes(id)).map((name) => name.endsWith(own))).toEqual([true]);
  });

  it('is found by the sweep, however its document went', async () => {
    const collection = await buildBoards();
    const [purged, there] = [await addBoard(undefined, collection), await addBoard(undefined, collection)];
    const lost = (await attach(server(), purged, collection)).body.path!;
    const stays = (await attach(server(), there, collection)).body.path!;
    await storedDocuments(test.app, collection).deleteOne({ _id: new ObjectId(purged) });
    await Promise.all([sweepAttachedJob.run(test.app, {}, job), sweepAttachedJob.run(test.app, {}, job)]);
    const names = await kept();
    expect([names.some((name) => name.endsWith(lost)), names.some((name) => name.endsWith(stays))]).toEqual([
      ...[false, true],
    ]);
    await test.app.db.collection('collections').deleteOne({ _id: collection._id });
    await sweepAttachedJob.run(test.app, {}, job);
    expect((await kept()).some((name) => name.endsWith(stays))).toBe(false);
  });

  it('can be private without a document: links for the secret key alone', async () => {
    expect(codeOf(await send(as(people.ada), 'POST', 'storage/upload', form({ visibility: 'private' })))).toEqual([
      ...[403, 'SECRET_KEY_REQUIRED'],
    ]);
    const { body } = await send(server(), 'POST', 'storage/upload', form({ visibility: 'private' }));
    expect(body).toMatchObject({ url: null, visibility: 'private' });
    const path = body.path!;
    expect((await fetch(`${test.url}/files/${path}`)).status).toBe(404);
    expect((await link(as(people.ada), path)).status).toBe(404);
    expect((await fetch((await link(server(), path)).body.url!)).status).toBe(200);
    expect((await send(as(people.ada), 'DELETE', 'storage/file', { path })).status).toBe(404);
    // A public one has a link, too.
    const open = (await send(server(), 'POST', 'storage/upload', form({}))).body.path!;
    expect((await fetch((await link(guest(), open)).body.url!)).status).toBe(200);
  });

  it('is in a bucket that only links open', async () => {
    const double = use(await openS3Double());
    const project = await buildProject(test.app);
    const key = { 'x-api-key': project.secret };
    await setBucket(test.app, project.project, double.access, false);
    const cards = await buildCollection(test.app, project.project, { fields: [parseFieldSpec('n:Number')] });
    const id = (await send(key, 'POST', `data/${cards.name}`, { n: 1 })).body._id!;
    expect(codeOf(await attach(key, id, cards))).toEqual([409, 'BUCKET_IS_PUBLIC']);
    expect(double.objects.size).toBe(0);
    double.closeBucket();
    // The answer about an open bucket is remembered with the bucket as it was set.
    await setBucket(test.app, project.project, { ...double.access, publicUrl: null }, false);
    clock.advance(1_000);
    const wanted = { filename: 'a.png', contentType: 'image/png', size: 3, attach: { collection: cards.name, id } };
    const grant = (await send(key, 'POST', 'storage/upload-request', wanted)).body;
    expect((await putSigned(grant.signedUrl!, 'abc', 'image/png')).status).toBe(200);
    const path = grant.filePath!;
    expect((await send(key, 'POST', 'storage/upload-confirm', { filePath: path, size: 3 })).status).toBe(200);
    const { url } = (await link(key, path)).body as unknown as { url: string };
    expect(url).toMatch(/X-Amz-Expires=600/);
    // What the bucket is to say of it is signed with the rest.
    expect(new URL(url).searchParams.get('response-cache-control')).toBe('private, max-age=300');
    expect((await fetch(url.replace('max-age%3D300', 'max-age%3D999'))).status).toBe(403);
    const read = await fetch(url);
    expect([read.status, read.headers.get('cache-control'), await read.text()]).toEqual([
      ...[200, 'private, max-age=300', 'abc'],
    ]);
    const part = await fetch(url, { headers: { range: 'bytes=1-' } });
    expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, 'bytes 1-2/3', 'bc']);
    expect((await fetch(url, { headers: { range: 'bytes=3-' } })).status).toBe(416);
    // A bucket's signature is for the one method.
    for (const method of ['HEAD', 'PUT', 'DELETE'])
      expect([method, (await fetch(url, { method })).status]).toEqual([method, 403]);
    expect((await fetch(url.replace(/[?].*/, ''))).status).toBe(403);
    expect((await fetch(url.replace('Expires=600', 'Expires=6000'))).status).toBe(403);
    // What was given lasts its ten minutes, and nothing more is given.
    expect((await send(key, 'DELETE', `data/${cards.name}/${id}`)).status).toBe(200);
    expect(codeOf(await link(key, path))).toEqual([404, 'FILE_NOT_FOUND']);
    expect((await fetch(url)).status).toBe(200);
    double.setSkewMs(10 * 60_000 + 1_000);
    expect((await fetch(url)).status).toBe(403);
    double.setSkewMs(0);
    await storedDocuments(test.app, cards).deleteOne({ _id: new ObjectId(id) });
    await sweepAttachedJob.run(test.app, {}, job);
    expect(double.objects.size).toBe(0);
  });

  it('has a link exactly when its document would be shown', async () => {
    const random = openRandom(openSeed('attached files'));
    const everybody = [server(), guest(), as(people.ada), as(people.bob), as(people.cleo)];
    const found = { yes: 0, no: 0 };
    for (let round = 0; round < 3; round++) {
      const rule = random.pick([MEMBERS, 'doc.owner = user.id', 'anyone', 'user', 'doc.title = "b"']);
      const collection = await buildCollection(test.app, owner.project, {
        fields: ['title:String', 'owner:String', 'members:Array(String)'].map(parseFieldSpec),
        rules: { ...BOARD_RULES, read: rule },
      });
      const id = await addBoard(undefined, collection);
      const path = (await attach(server(), id, collection)).body.path!;
      const at = `data/${collection.name}/${id}`;
      let isAnother = false;
      for (let step = 0; step < 4; step++) {
        await Promise.all(
          everybody.map(async (who) => {
            const shown = (await send(who, 'GET', at)).status === 200 && !isAnother;
            expect([rule, step, (await link(who, path)).status === 200]).toEqual([rule, step, shown]);
            found[shown ? 'yes' : 'no']++;
          }),
        );
        await random.pick([
          () => send(server(), 'PATCH', at, { members: random.pick([[], [people.bob], [people.cleo, people.ada]]) }),
          () => send(server(), 'PATCH', at, { owner: random.pick([people.ada, people.cleo]) }),
          () => send(server(), 'PATCH', at, { title: random.pick(['a', 'b']) }),
          () => send(server(), 'DELETE', at),
          () => send(server(), 'PATCH', `${at}/recover`),
          async () => {
            const again = { _id: id, title: 'b', owner: people.cleo, members: [people.cleo] };
            await send(server(), 'DELETE', `${at}?permanent=true`);
            clock.advance(1);
            isAnother = (await send(server(), 'POST', `data/${collection.name}`, again)).status === 201;
          },
          () =>
            step > 1 ? send(server(), 'DELETE', `${at}?permanent=true`) : send(server(), 'PATCH', `${at}/recover`),
        ])();
      }
    }
    // The secret key is shown it at first, and a guest is not always.
    expect(found.yes).toBeGreaterThanOrEqual(3);
    expect(found.yes + found.no).toBe(60);
  });
});
