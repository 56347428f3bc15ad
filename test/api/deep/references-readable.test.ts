import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import type { App } from '../../world/app.js';
import { type Collection, editCollection, parseFieldSpec } from '../../world/collections.js';
import { insertDocument, userCaller, requireWriteTarget } from '../../world/documents.js';
import { drainJobs, removeAnonymousUsersJob } from '../../world/jobs.js';
import { changeProject } from '../../world/projects.js';
import { buildCollection, buildProject, storedDocuments } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { useTestApp } from '../../helpers/use.js';
import { bearer, openUserClient, PASSWORD } from '../../helpers/user-client.js';

// A writer refers only to what it may read, and is kept from deleting only by what it could change itself.

const clock = createFakeClock();

const made = { count: 0 };

const settings = { BSVC_BCRYPT_COST: '4', BSVC_ANONYMOUS_RATE_LIMIT: 'off' };
const test = await useTestApp({ settings, constants: { ruleSet: 50 }, clock });
const owner = await buildProject(test.app);
await changeProject(test.app, owner.project, { signIn: { anonymous: true } });
const client = openUserClient(test, owner.publishable);

type Headers = Record<string, string>;
interface Answer {
  status: number;
  text: string;
  body: { code?: string; _id?: string; message?: string };
}
type Method = 'get' | 'post' | 'patch' | 'delete';

async function send(headers: Headers, method: Method, path: string, body?: object): Promise<Answer> {
  const sent = request(test.server)[method](`/api/${path}`).set(headers);
  const { status, text, body: answer } = body === undefined ? await sent : await sent.send(body);
  return { status, text, body: answer as Answer['body'] };
}

const server = (): Headers => ({ 'x-api-key': owner.secret });
const anyone = (): Headers => ({ 'x-api-key': owner.publishable });
const as = ({ token }: Person): Headers => ({ ...anyone(), ...bearer(token) });

interface Person {
  id: string;
  token: string;
}

async function signUp(): Promise<Person> {
  const { body } = await client.signUp();
  const { user, accessToken } = body as { user: { _id: string }; accessToken: string };
  return { id: user._id, token: accessToken };
}

const build = (specs: string[], more: object = {}): Promise<Collection> =>
  buildCollection(test.app, owner.project, { fields: specs.map(parseFieldSpec), ...more });

const store = async ({ name }: Collection, body: object): Promise<string> => {
  const { status, text, body: answer } = await send(server(), 'post', `data/${name}`, body);
  expect(status, text).toBe(201);
  return answer._id!;
};
const unknownId = (): string => new ObjectId().toHexString();
const OPEN = { read: 'anyone', create: 'anyone', update: 'anyone', delete: 'anyone' };

describe('the document that a write refers to', () => {
  /** Rules of the collection that is referred to, with what makes a document readable. */
  const READS: Record<string, { access: object; readable: ((person: Person) => object) | null; anonymous?: boolean }> =
    {
      'its owner': { access: { rules: { read: 'doc.owner = user.id' } }, readable: ({ id }) => ({ owner: id }) },
      'a list': { access: { rules: { read: 'user.id in doc.people' } }, readable: ({ id }) => ({ people: [id] }) },
      'a set of the id': {
        access: { rules: { read: 'doc.id in members[user = user.id].of' } },
        readable: () => ({ text: 'member' }),
      },
      'a set of a field': {
        access: { rules: { read: 'doc.text in members[user = user.id].of' } },
        readable: () => ({ text: 'mine' }),
      },
      'a constant': { access: { rules: { read: 'doc.open' } }, readable: () => ({ open: true }), anonymous: true },
      'row-level security': {
        access: { rls: { mode: 'private', ownerField: 'owner' } },
        readable: ({ id }) => ({ owner: id }),
      },
      nobody: { access: { rules: 'server-only' }, readable: null },
    };

  type Way = (headers: Headers, fields: { one: Collection; own: string }, id: string) => Promise<Answer>;
  /** Every way in which a reference gets in. */
  const WAYS: Record<string, Way> = {
    insert: (headers, { one }, id) => send(headers, 'post', `data/${one.name}`, { to: id }),
    'insert of a list': (headers, { one }, id) => send(headers, 'post', `data/${one.name}`, { all: [id] }),
    'insert, repeated': (headers, { one }, id) =>
      send({ ...headers, 'idempotency-key': unknownId() }, 'post', `data/${one.name}`, { to: id }),
    bulk: (headers, { one }, id) => send(headers, 'post', `data/${one.name}/bulk`, [{}, { to: id }]),
    update: (headers, { one, own }, id) => send(headers, 'patch', `data/${one.name}/${own}`, { to: id }),
    'update of a list': (headers, { one, own }, id) => send(headers, 'patch', `data/${one.name}/${own}`, { all: [id] }),
    'update at a position': (headers, { one, own }, id) =>
      send(headers, 'patch', `data/${one.name}/${own}`, { 'all.0': id }),
    $push: (headers, { one, own }, id) => send(headers, 'patch', `data/${one.name}/${own}`, { $push: { all: id } }),
    $addToSet: (headers, { one, own }, id) =>
      send(headers, 'patch', `data/${one.name}/${own}`, { $addToSet: { all: { $each: [id] } } }),
    'batch, insert': (headers: Headers, { one }: { one: Collection }, id: string) => {
      const operations = [{ op: 'insert', collection: one.name, body: { to: id } }];
      return send(headers, 'post', 'batch', { operations });
    },
    'batch, update': (headers: Headers, { one, own }: { one: Collection; own: string }, id: string) => {
      const operations = [{ op: 'update', collection: one.name, id: own, body: { $push: { all: id } } }];
      return send(headers, 'post', 'batch', { operations });
    },
  };

  const withoutIds = ({ status, text }: Answer): unknown => [
    status,
    text.replaceAll(/"requestId":"[^"]*"|[0-9a-f]{24}/g, '…'),
  ];

  it.each(Object.entries(READS))(
    'is one that the writer may read, by %s',
    async (_, { access, readable, anonymous }) => {
      const person = await signUp();
      const members = await buildCollection(test.app, owner.project, {
        name: `members${++made.count}`,
        fields: ['user:String', 'of:String'].map(parseFieldSpec),
        rules: 'server-only',
      });
      const named = JSON.parse(JSON.stringify(access).replace('members[', `${members.name}[`)) as object;
      const targets = await build(['owner:String', 'text:String', 'open:Boolean', 'people:Array(String)'], named);
      const to = `Ref(${targets.name}){check}`;
      const one = await build([`to:${to}`, `all:Array(${to})`], { rules: OPEN });
      const seen = readable && (await store(targets, readable(person)));
      const [unseen, first] = [
        await store(targets, { owner: unknownId(), text: 'theirs' }),
        await store(targets, { owner: unknownId() }),
      ];
      for (const of of [seen, 'mine']) if (of) await store(members, { user: person.id, of });
      for (const [way, run] of Object.entries(WAYS)) {
        const writeAs = async (headers: Headers, id: string): Promise<Answer> =>
          run(headers, { one, own: await store(one, { all: [first] }) }, id);
        const missing = await writeAs(as(person), unknownId());
        expect([missing.status, missing.body.code], way).toEqual([400, 'REFERENCE_MISSING']);
        expect(withoutIds(await writeAs(as(person), unseen)), way).toEqual(withoutIds(missing));
        expect(withoutIds(await writeAs(anyone(), unseen)), way).toEqual(withoutIds(missing));
        expect((await writeAs(server(), unseen)).status, way).toBeLessThan(300);
        if (seen === null) continue;
        expect((await writeAs(as(person), seen)).status, way).toBeLessThan(300);
        const nobody = await writeAs(anyone(), seen);
        if (anonymous) expect(nobody.status, way).toBeLessThan(300);
        else expect(withoutIds(nobody), way).toEqual(withoutIds(missing));
      }
      // One that is there already may be sent back by who sees it.
      const own = await store(one, { to: unseen, all: [unseen] });
      const again = { to: unseen, all: [unseen] };
      expect((await send(as(person), 'patch', `data/${one.name}/${own}`, again)).status).toBe(200);
      expect(await readsOf(person, one, unseen)).toEqual(await readsOf(person, one, unknownId()));
    },
  );

  /** What an insert reads and writes. */
  async function readsOf({ id: userId }: Person, { name }: Collection, to: string): Promise<string[]> {
    const calls: string[] = [];
    const counted = <T extends object>(object: T, named: string): T =>
      new Proxy(object, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== 'function') return value;
          return (...given: unknown[]): unknown => {
            calls.push(`${named} ${String(key)}`);
            return (value as (...args: unknown[]) => unknown).apply(target, given);
          };
        },
      });
    const { db } = test.app;
    const app: App = {
      ...test.app,
      db: { ...db, collection: (stored, options) => counted(db.collection(stored, options), stored) },
    };
    const place = await requireWriteTarget(app, userCaller(owner.project, userId), name);
    await insertDocument(app, place, { to }).catch((error: unknown) =>
      expect((error as { code: string }).code).toBe('REFERENCE_MISSING'),
    );
    // The others are of copies that each process keeps for a moment.
    return calls.filter((call) => call.startsWith('documents_'));
  }

  it('is no reference of a hidden field that could be guessed', async () => {
    const person = await signUp();
    const targets = await build(['owner:String'], { rules: { read: 'doc.owner = user.id' } });
    const one = await build([`to:Ref(${targets.name}){check}@read(nobody)@write(anyone)`], { rules: OPEN });
    const unseen = await store(targets, { owner: unknownId() });
    const own = await store(one, { to: unseen });
    for (const id of [unseen, unknownId()]) {
      const answer = await send(as(person), 'patch', `data/${one.name}/${own}`, { to: id });
      expect([answer.status, answer.body.code]).toEqual([400, 'REFERENCE_MISSING']);
    }
  });

  it('may be stored, and made readable, by the same batch', async () => {
    const person = await signUp();
    const name = `rows${++made.count}`;
    const members = await buildCollection(test.app, owner.project, {
      name,
      fields: ['user:String=user.id@fixed', 'of:String'].map(parseFieldSpec),
      rules: { read: 'doc.user = user.id', create: 'doc.user = user.id', update: 'nobody', delete: 'nobody' },
    });
    for (const read of [`doc.id in ${name}[user = user.id].of`, `doc.text in ${name}[user = user.id].of`]) {
      const boards = await build(['text:String'], { rules: { read, create: 'user', update: 'user', delete: 'user' } });
      const cards = await build([`board:Ref(${boards.name}){check}`], { rules: OPEN });
      const insert = ({ name: collection }: Collection, body: object): object => ({ op: 'insert', collection, body });
      const [id, other] = [unknownId(), unknownId()];
      const operations = [
        insert(boards, { _id: id, text: id }),
        insert(members, { of: id }),
        insert(cards, { board: id }),
      ];
      expect((await send(as(person), 'post', 'batch', { operations })).status).toBe(200);
      const without = [insert(boards, { _id: other, text: other }), insert(cards, { board: other })];
      const refused = await send(as(person), 'post', 'batch', { operations: without });
      expect([refused.status, refused.body.code]).toEqual([400, 'REFERENCE_MISSING']);
    }
  });

  it('is one that a user may read, also in the own profile', async () => {
    const person = await signUp();
    const targets = await build(['owner:String', 'open:Boolean'], {
      rules: { read: 'doc.owner = user.id or doc.open', create: 'nobody', update: 'nobody', delete: 'nobody' },
    });
    const [mine, open, theirs] = [
      await store(targets, { owner: person.id }),
      await store(targets, { open: true }),
      await store(targets, { owner: unknownId() }),
    ];
    await editCollection(test.app, owner.project._id, 'users', {
      addFields: [parseFieldSpec(`home:Ref(${targets.name}){check}`)],
    });
    const codeOf = async (answer: PromiseLike<{ status: number; body: unknown }>): Promise<unknown> => {
      const { status, body } = await answer;
      return status < 300 ? 'stored' : (body as { code?: string }).code;
    };
    const outcomes = async (write: (home: string) => PromiseLike<{ status: number; body: unknown }>) => {
      const found: unknown[] = [];
      for (const home of [mine, open, theirs, unknownId()]) found.push(await codeOf(write(home)));
      return found;
    };
    const missing = ['REFERENCE_MISSING', 'REFERENCE_MISSING'];
    expect(await outcomes((home) => client.send('put', '/update-profile', { home }, bearer(person.token)))).toEqual([
      ...['stored', 'stored'],
      ...missing,
    ]);
    expect(await outcomes((home) => client.signUp({ home }))).toEqual(['REFERENCE_MISSING', 'stored', ...missing]);
    expect(await outcomes((home) => client.post('/signup/anonymous', { home }))).toEqual([
      ...['REFERENCE_MISSING', 'stored'],
      ...missing,
    ]);
    const key = { 'x-api-key': owner.secret };
    expect(
      await outcomes((home) => request(test.server).patch(`/api/userAuth/users/${person.id}`).set(key).send({ home })),
    ).toEqual(['stored', 'stored', 'stored', 'REFERENCE_MISSING']);
    await editCollection(test.app, owner.project._id, 'users', { dropFields: ['home'] });
  });
});

describe('documents that restrict', () => {
  const NOBODY = { create: 'nobody', update: 'nobody', delete: 'nobody' };
  /** How others refer to a document of a user that this user cannot do anything about. */
  const STRANGERS: Record<string, { spec?: string; more: object }> = {
    'unreadable documents': { more: { rules: { ...OPEN, read: 'doc.by = user.id' } } },
    'private documents': { more: { rls: { mode: 'private', ownerField: 'by' } } },
    'public documents of others': { more: { rls: { mode: 'public-read', ownerField: 'by' } } },
    'documents that are only read': { more: { rules: { read: 'anyone', ...NOBODY } } },
    'documents of the server': { more: { rules: 'server-only' } },
    'documents that anybody reads': { more: {} },
    'hidden fields': { spec: '@hidden', more: { rules: OPEN } },
    'fields that are read by a rule': { spec: '@read(doc.by = user.id)', more: { rules: OPEN } },
  };
  type Removal = (person: Person, collection: Collection, id: string) => Promise<Answer>;
  const REMOVALS: Record<string, Removal> = {
    trash: (person, { name }, id) => send(as(person), 'delete', `data/${name}/${id}`),
    removal: (person, { name }, id) => send(as(person), 'delete', `data/${name}/${id}?permanent=true`),
    batch: (person: Person, { name: collection }: Collection, id: string) =>
      send(as(person), 'post', 'batch', { operations: [{ op: 'remove', collection, id }] }),
  };
  const PRIVATE = { rls: { mode: 'private', ownerField: 'owner' } };
  const refsOf = async (collection: Collection): Promise<unknown[]> =>
    (await storedDocuments(test.app, collection).find({}).sort({ _id: 1 }).toArray()).map(({ to, all }) => [
      to ?? null,
      all ?? null,
    ]);

  it.each(Object.entries(STRANGERS))('a document keep it not from its owner as %s', async (_, { spec = '', more }) => {
    const person = await signUp();
    const boards = await build(['owner:String'], PRIVATE);
    const to = `Ref(${boards.name})`;
    const restrict = '{onDelete:restrict}';
    const optional = await build(
      ['by:String', `to:${to}${restrict}${spec}`, `all:Array(${to}${restrict})${spec}`],
      more,
    );
    // A hidden field cannot be required.
    const isRequired = spec !== '@hidden';
    const required = await build(['by:String', `to:${to}${isRequired ? '!' : ''}${restrict}${spec}`], more);
    const by = unknownId();
    for (const remove of Object.values(REMOVALS)) {
      const board = await store(boards, { owner: person.id });
      const kept = await store(boards, { owner: person.id });
      await store(optional, { by, to: board, all: [board, kept] });
      await store(required, { by, to: board });
      // The project is kept from it.
      expect((await send(server(), 'delete', `data/${boards.name}/${board}`)).body.code).toBe('DOCUMENT_REFERRED_TO');
      const removed = await remove(person, boards, board);
      expect([removed.status, removed.body.code ?? ''], removed.text).toEqual([200, '']);
      await drainJobs(test.app);
      expect((await refsOf(optional)).at(-1)).toEqual([null, [kept]]);
      // A required reference stays: without it the document violate the schema.
      expect((await refsOf(required)).at(-1)).toEqual([isRequired ? board : null, null]);
    }
  });

  it('hold it by documents that the deleting user may change', async () => {
    const person = await signUp();
    const boards = await build(['owner:String'], PRIVATE);
    const members = await buildCollection(test.app, owner.project, {
      name: `holders${++made.count}`,
      fields: ['user:String', 'of:String'].map(parseFieldSpec),
      rules: 'server-only',
    });
    const own = { update: 'nobody', create: 'nobody', delete: 'doc.by = user.id' };
    const HOLDING: object[] = [
      { rls: { mode: 'private', ownerField: 'by' } },
      { rules: { read: 'anyone', ...own } },
      { rules: { read: 'anyone', ...own, delete: 'nobody', update: 'doc.by = user.id' } },
      { rules: { read: 'anyone', ...own, delete: `doc.to in ${members.name}[user = user.id].of` } },
      { rules: { read: 'anyone', ...own, delete: `doc.by in ${members.name}[user = user.id].of` } },
    ];
    for (const more of HOLDING) {
      const referring = await build(['by:String', `to:Ref(${boards.name}){onDelete:restrict}`], more);
      for (const remove of Object.values(REMOVALS)) {
        const board = await store(boards, { owner: person.id });
        for (const of of [board, person.id]) await store(members, { user: person.id, of });
        const holder = await store(referring, { by: person.id, to: board });
        const refused = await remove(person, boards, board);
        expect([refused.status, refused.body.code], JSON.stringify(more)).toEqual([409, 'DOCUMENT_REFERRED_TO']);
        await send(server(), 'delete', `data/${referring.name}/${holder}`);
        expect((await remove(person, boards, board)).status).toBe(200);
        await storedDocuments(test.app, members).deleteMany({});
      }
    }
    // Somebody who is made a member of too much is not kept from anything.
    const referring = await build(['by:String', `to:Ref(${boards.name}){onDelete:restrict}`], HOLDING.at(-1));
    const board = await store(boards, { owner: person.id });
    await store(referring, { by: unknownId(), to: board });
    for (let at = 0; at < 60; at++) await store(members, { user: person.id, of: unknownId() });
    expect((await send(as(person), 'delete', `data/${boards.name}/${board}`)).status).toBe(200);
  });

  it('hold it by what the same batch stores, and not by what it removes', async () => {
    const person = await signUp();
    const boards = await build(['owner:String'], PRIVATE);
    const referring = await build(['by:String', `to:Ref(${boards.name}){onDelete:restrict}`], {
      rls: { mode: 'public-read', ownerField: 'by' },
    });
    const board = await store(boards, { owner: person.id });
    // So many that a transaction could not look through them.
    const theirs = Array.from({ length: 600 }, () => ({ by: unknownId(), to: board }));
    for (let at = 0; at < 600; at += 100) {
      const { status } = await send(server(), 'post', `data/${referring.name}/bulk`, theirs.slice(at, at + 100));
      expect(status).toBe(201);
    }
    const remove = (collection: Collection, id: string): object => ({ op: 'remove', collection: collection.name, id });
    const batch = (...operations: object[]): Promise<Answer> => send(as(person), 'post', 'batch', { operations });
    const refused = { status: 409, body: { code: 'DOCUMENT_REFERRED_TO' } };
    const refer = { op: 'insert', collection: referring.name, body: { to: board } };
    expect(await batch(refer, remove(boards, board))).toMatchObject(refused);
    const [one, two] = [
      await store(referring, { by: person.id, to: board }),
      await store(referring, { by: person.id, to: board }),
    ];
    expect(await batch(remove(boards, board))).toMatchObject(refused);
    expect(await batch(remove(referring, one), remove(boards, board))).toMatchObject(refused);
    const all = [remove(referring, one), remove(referring, two), remove(boards, board)];
    expect((await batch(...all)).status).toBe(200);
    await drainJobs(test.app);
    expect((await refsOf(referring)).filter((refs) => (refs as unknown[])[0] !== null)).toHaveLength(2);
  });

  it('an account keep it not from its user, nor a guest from going', async () => {
    const restrict = 'to:Ref(users){onDelete:restrict}';
    const [pins, required]: [Collection[], Collection[]] = [[], []];
    for (const { spec = '', more } of Object.values(STRANGERS)) {
      pins.push(await build(['by:String', `${restrict}${spec}`], more));
      if (spec !== '@hidden')
        required.push(await build(['by:String', `to:Ref(users)!{onDelete:restrict}${spec}`], more));
    }
    const eve = await signUp();
    const person = await signUp();
    const { body } = await client.post('/signup/anonymous');
    const guest = (body as { user: { _id: string } }).user._id;
    for (const pin of [...pins, ...required]) for (const to of [person.id, guest]) await store(pin, { by: eve.id, to });
    const bySecret = await send(server(), 'delete', `userAuth/users/${person.id}`);
    expect([bySecret.status, bySecret.body.code]).toEqual([409, 'DOCUMENT_REFERRED_TO']);
    const deleted = await send(as(person), 'delete', 'userAuth/me', { currentPassword: PASSWORD });
    expect([deleted.status, deleted.text]).toEqual([200, expect.any(String)]);
    clock.advance(31 * 86_400_000);
    await removeAnonymousUsersJob.run(test.app, {}, { stopping: new AbortController().signal } as never);
    expect((await send(server(), 'get', `userAuth/users/${guest}`)).status).toBe(404);
    await drainJobs(test.app);
    const ofBoth = (of: (id: string) => unknown): unknown[] => [person.id, guest].map((id) => [of(id), null]);
    for (const pin of pins) expect(await refsOf(pin)).toEqual(ofBoth(() => null));
    for (const pin of required) expect(await refsOf(pin)).toEqual(ofBoth((id) => id));
  });
});
