import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../../world/app.js';
import { editCollection } from '../../../world/collections.js';
import { buildCollection } from '../../../helpers/build-project.js';
import { use } from '../../../helpers/use.js';
import { ROUTE_TABLE, fill, patternOf } from '../routes-table.js';
import {
  asSecret,
  buildEstate,
  callerWith,
  fire,
  openStage,
  outcomeOf,
  passFor,
  readEverything,
  type Caller,
} from '../stage.js';

const stage = use(await openStage());
const estate = await buildEstate(stage);
const asUser = callerWith(stage, passFor('an end user', estate));
const fields = [{ name: 'title', type: 'String' } as const, { name: 'meta', type: 'Object' } as const];
const rls = { mode: 'private', ownerField: 'userId' } as const;
await buildCollection(stage.app, estate.project, { name: 'enforced', fields, rls });
await buildCollection(stage.app, estate.project, { name: 'flexible', rls });
const text = (name: string) => ({ name, type: 'String' as const });
const members = { name: 'memberships', fields: ['board', 'user'].map(text), rules: 'server-only' as const };
await buildCollection(stage.app, estate.project, members);
const own = 'doc.userId = user.id';
const rules = {
  read: `${own} or doc.userId in memberships[user = user.id].board`,
  create: own,
  update: own,
  delete: own,
};
const owner = { ...text('userId'), stamp: 'user.id', fixed: true } as const;
await buildCollection(stage.app, estate.project, { name: 'ruled', fields: [...fields, owner], rules });
const ruledFlexible = { name: 'ruledFlexible', mode: 'flexible' as const, fields: [owner], rules };
await buildCollection(stage.app, estate.project, ruledFlexible);
await editCollection(stage.app, estate.project._id, 'users', {
  addFields: [
    { name: 'role', type: 'String', default: 'member', protected: true },
    { name: 'credits', type: 'Object', protected: true },
  ],
});

const SOMEBODY = 'f'.repeat(24);

/** What no client may set on a document: the service's own fields, at any spelling, and somebody else as the owner. */
const DOCUMENT_FIELDS: readonly [field: string, value: unknown][] = [
  ['_id', SOMEBODY],
  ['_id', { $oid: SOMEBODY }],
  ['_id', null],
  ['isDeleted', true],
  ['isDeleted', 'pending'],
  ['isDeleted', 'removed'],
  ['isDeleted', 0],
  ['isDeleted', ''],
  ['deletedAt', '2020-01-01T00:00:00.000Z'],
  ['deletedAt', 0],
  ['createdAt', '2020-01-01T00:00:00.000Z'],
  ['createdAt', null],
  ['updatedAt', '2999-01-01T00:00:00.000Z'],
  ['_bsvc', { events: [] }],
  ['_bsvc', null],
  ['userId', SOMEBODY],
  ['userId', [SOMEBODY]],
  ['userId', { $ne: null }],
  ['userId', ''],
  ['userId', null],
];
/** Paths into the same, as updates may have them. */
const DOCUMENT_PATHS: readonly [field: string, value: unknown][] = [
  ['_id.x', 1],
  ['isDeleted.x', true],
  ['isDeleted.$ne', true],
  ['deletedAt.x', null],
  ['createdAt.0', '2020'],
  ['_bsvc.events', []],
  ['_bsvc.passwordHash', 'x'],
  ['userId.x', SOMEBODY],
  ['userId.0', SOMEBODY],
  ['$set', { isDeleted: true }],
  ['$unset', { userId: '' }],
  ['meta.$rename', { title: 'userId' }],
  ['meta.__proto__.x', 1],
  ['meta.constructor.prototype', {}],
];

/** A new document may bring an id that is none of another one (writes.md 4). */
const NOT_INSERTED = DOCUMENT_FIELDS.filter(([field, value]) => field !== '_id' || value !== SOMEBODY);

const OWNED = ['enforced', 'flexible', 'ruled', 'ruledFlexible'];

describe.each(OWNED)('a document that belongs to a user, %s', (name) => {
  it.each(NOT_INSERTED)('is not inserted with %s = %j', async (field, value) => {
    const body = { title: 'a', [field]: value };
    for (const [path, sent] of [
      [`/api/data/${name}`, body],
      [`/api/data/${name}/bulk`, [{ title: 'a' }, body]],
    ] as const) {
      const answer = await asUser('POST', path, sent);
      expect([400, 403], answer.text).toContain(answer.status);
    }
    // The secret key sees everybody's.
    const counted = await asSecret(stage, estate)('GET', `/api/data/${name}?include_deleted=true&count=true&title=a`);
    expect(JSON.parse(counted.text)).toMatchObject({ data: { count: 0 } });
  });

  it.each([...DOCUMENT_FIELDS, ...DOCUMENT_PATHS])('is not changed by %s = %j', async (field, value) => {
    const before = JSON.parse((await asUser('POST', `/api/data/${name}`, { title: 'mine', meta: { a: 1 } })).text) as {
      _id: string;
    };
    for (const method of ['PUT', 'PATCH']) {
      const answer = await asUser(method, `/api/data/${name}/${before._id}`, { title: 'taken', [field]: value });
      expect([400, 403], answer.text).toContain(answer.status);
    }
    const after = await asUser('GET', `/api/data/${name}/${before._id}`);
    expect(JSON.parse(after.text)).toEqual(before);
    await asUser('DELETE', `/api/data/${name}/${before._id}?permanent=true`);
  });
});

describe('an end user', () => {
  const forbidden: readonly [field: string, value: unknown][] = [
    ['role', 'admin'],
    ['credits', { amount: 1e9 }],
    ['emailVerified', true],
    ['_id', SOMEBODY],
    ['isDeleted', true],
    ['createdAt', '2020-01-01T00:00:00.000Z'],
    ['_bsvc', { passwordHash: '$2b$04$x', disabledAt: null }],
    ['passwordHash', '$2b$04$x'],
    ['disabledAt', null],
    ['tokensSince', null],
    ['sessions', []],
    ['projectId', SOMEBODY],
  ];
  it.each(forbidden)('cannot sign up with %s = %j', async (field, value) => {
    const body = { email: 'new@example.test', password: 'long enough', [field]: value };
    const answer = await callerWith(stage, { 'x-api-key': estate.publishable })('POST', '/api/userAuth/signup', body);
    expect(outcomeOf(answer)).toMatch(/^400 (VALIDATION_FAILED|INVALID_BODY)$/);
    const path = `/api/projects/${estate.names.projectId}/users?email=new@example.test`;
    const found = await callerWith(stage, passFor('an operator', estate))('GET', path);
    expect(JSON.parse(found.text)).toMatchObject({ data: { total: 0 } });
  });

  const inProfile: readonly [field: string, value: unknown][] = [
    ...forbidden,
    ['role.x', 'admin'],
    ['credits.amount', 1e9],
    ['emailVerified.x', true],
    ['_bsvc.passwordHash', '$2b$04$x'],
    ['_bsvc.disabledAt', null],
    ['password', 'a new one'],
    ['password.x', 'a new one'],
    ['$set', { role: 'admin' }],
  ];
  it.each(inProfile)('cannot give itself %s = %j', async (field, value) => {
    const before = (await asUser('GET', '/api/userAuth/me')).text;
    for (const method of ['PUT', 'PATCH']) {
      const answer = await asUser(method, '/api/userAuth/update-profile', { name: 'Eve', [field]: value });
      expect(outcomeOf(answer)).toMatch(/^400 (VALIDATION_FAILED|INVALID_BODY)$/);
    }
    expect((await asUser('GET', '/api/userAuth/me')).text).toBe(before);
  });

  it('cannot take the address of somebody else', async () => {
    const email = estate.names.email!.toUpperCase();
    const change = (more: object) => asUser('PATCH', '/api/userAuth/update-profile', { email, ...more });
    expect(outcomeOf(await change({}))).toBe('400 CURRENT_PASSWORD_REQUIRED');
    expect(outcomeOf(await change({ currentPassword: estate.names.password }))).toBe('409 EMAIL_TAKEN');
  });

  it('has no name for another user: ids in the body of its own routes are refused or mean nothing', async () => {
    const others = { _id: estate.names.user, userId: estate.names.user, id: estate.names.user };
    for (const [field, value] of Object.entries(others)) {
      const answer = await asUser('PATCH', '/api/userAuth/update-profile', { [field]: value, name: 'Eve' });
      expect(answer.status, field).toBe(400);
      const change = { currentPassword: 'guessed at', newPassword: 'another one', [field]: value };
      expect((await asUser('POST', '/api/userAuth/change-password', change)).status, field).toBe(401);
    }
  });
});

/** Fields of the records behind these bodies that no request may set. */
const OF_WEBHOOKS = ['id', 'secret', 'secrets', 'disabled', 'failingSince', 'createdAt', 'projectId'];
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  'PATCH /api/projects/:projectId': [
    '_id',
    'id',
    'keys',
    'tokenSecrets',
    'state',
    'createdAt',
    'updatedAt',
    'mail',
    'mail.encryptedKey',
    'bucket',
    'storage.bucket',
    'limits.storage',
    'projectId',
    'storage',
  ],
  'POST /api/projects': ['_id', 'keys', 'tokenSecrets', 'state', 'limits', 'allowedDomains', 'operators'],
  'POST /api/projects/:projectId/keys': ['value', 'hash', 'id', 'last4', 'expiresAt', 'revokedAt', 'live'],
  'POST /api/projects/:projectId/keys/rotate': ['value', 'hash', 'expiresAt'],
  'POST /api/projects/:projectId/collections': ['_id', 'projectId', 'version', 'state', 'createdAt'],
  'PATCH /api/projects/:projectId/collections/:collection': ['_id', 'projectId', 'name', 'version', 'state'],
  'PUT /api/projects/:projectId/collections/:collection/rls': ['projectId', 'bypass'],
  'PUT /api/projects/:projectId/collections/:collection/rules': ['projectId', 'agreed', 'rls', 'version'],
  'PUT /api/projects/:projectId/collections/:collection/changes': ['epoch', 'version', 'projectId', 'seq'],
  'POST /api/schemas': ['_id', 'projectId', 'version', 'state', 'createdAt'],
  'POST /api/projects/:projectId/webhooks': OF_WEBHOOKS,
  'PATCH /api/projects/:projectId/webhooks/:webhook': OF_WEBHOOKS,
  'PUT /api/projects/:projectId/mail/templates/:template': ['_id', 'scope', 'projectId', 'name'],
  'PUT /api/projects/:projectId/bucket': ['id', 'setAt', 'encryptedSecretAccessKey', 'projectId'],
  'PUT /api/projects/:projectId/social/:provider': ['_id', 'name', 'projectId', 'kind', 'encryptedSecret', 'createdAt'],
  'PUT /api/projects/:projectId/schema': ['projectId', 'version', 'keys'],
  'POST /api/projects/:projectId/rotate-tokens': ['kid', 'secret', 'encrypted'],
  'POST /api/projects/:projectId/collections/:collection/documents/import': ['projectId', 'collection', 'owner'],
  'POST /api/projects/:projectId/users/:user/set-password': ['_bsvc', 'passwordHash', 'user'],
  'PATCH /api/projects/:projectId/users/:user': [
    '_id',
    '_bsvc',
    '_bsvc.passwordHash',
    'isDeleted',
    'createdAt',
    'password',
    'disabled',
    'hasPassword',
  ],
  'POST /api/admin/login': ['role', 'projects', 'ttl', 'token'],
};
/** The same of every other body whose fields are all known. */
const COMMON = ['_id', 'projectId', '_bsvc'];

const CLOSED = new Set(
  ROUTE_LISTS.flatMap((list) => list.routes)
    .filter(({ body }) => body?.additionalProperties === false)
    .map(patternOf),
);
const RECORDS = ROUTE_TABLE.filter((row) => CLOSED.has(patternOf(row)) || `${row.method} ${row.path}` in FIELDS);

describe.each(RECORDS)('$method $path', ({ method, path, pass, body }) => {
  it.each(FIELDS[`${method} ${path}`] ?? COMMON)('is refused with the field %s', async (field) => {
    const before = await readEverything(stage, estate);
    const sent = { ...(body as object), [field]: field === 'storage' ? { bucket: {} } : 'assigned' };
    const answer = await fire(stage, {
      method,
      path: fill(path, estate.names),
      headers: passFor(pass, estate),
      body: fill(sent, estate.names),
    });
    expect(answer.status).toBe(400);
    expect(await readEverything(stage, estate)).toBe(before);
  });
});

describe('bodies that name more than they may without being refused', () => {
  const call: Caller = (...args) => asSecret(stage, estate)(...args);

  it('choose neither place, project nor provider of an upload', async () => {
    const body = {
      filename: 'a.txt',
      contentType: 'text/plain',
      size: 6,
      path: 'x/y',
      projectId: SOMEBODY,
      provider: 'external',
    };
    const { filePath } = JSON.parse((await call('POST', '/api/storage/upload-request', body)).text) as {
      filePath: string;
    };
    expect(filePath.startsWith(`${estate.names.projectId}/`)).toBe(true);
  });

  it('choose neither sender, project nor state of a mail', async () => {
    const body = {
      to: 'ann@example.test',
      subject: 'assigned',
      text: 't',
      from: 'evil@example.test',
      projectId: SOMEBODY,
      status: 'delivered',
      bcc: 'x@example.test',
      headers: { Bcc: 'x@example.test' },
    };
    const answer = await call('POST', '/api/mail/send', body);
    expect(answer.status).toBe(200);
    const log = await stage.app.db
      .collection<Record<string, unknown> & { subject: string }>('mail_logs')
      .findOne({ subject: 'assigned' });
    expect(log).toMatchObject({ projectId: estate.project._id, status: 'queued', to: ['ann@example.test'] });
    const batch = [{ ...body, subject: 'assigned too' }];
    expect((await call('POST', '/api/mail/send-batch', batch)).status).toBe(200);
    const sent = stage.provider.calls.filter(({ body: mails }) => JSON.stringify(mails).includes('assigned too'));
    expect(sent.length).toBe(1);
    expect(JSON.stringify(sent)).not.toMatch(/evil@|x@example/);
  });

  it('pass nothing on to the mail provider that a contact or broadcast has not', async () => {
    const more = { bcc: 'x@example.test', audience_id: 'other', headers: {}, send: true, segmentIds: ['other'] };
    await call('POST', `/api/mail/audiences/${estate.names.audience}/contacts`, { email: 'c@example.test', ...more });
    await call('POST', '/api/mail/broadcasts', { audienceId: estate.names.audience, subject: 's', text: 't', ...more });
    await call('POST', '/api/mail/audiences', { name: 'n', ...more });
    const said = JSON.stringify(stage.provider.calls.slice(-3).map(({ body }) => body));
    expect(said).not.toMatch(/x@example|other|"send"/);
  });
});

describe('every route that reads a body of fields', () => {
  it('is refused what it does not know, as above, or its body is free by its nature', () => {
    const free = [
      // Documents and their relatives: their own tables are above.
      /^(POST|PUT|PATCH) \/api\/data\//,
      /^(POST|PUT|PATCH|DELETE) \/api\/userAuth\//,
      /^(POST|DELETE) \/api\/storage\//,
      /^(POST|PATCH) .*\/mail\/(send|send-batch|webhook|audiences|broadcasts)/,
      /^POST .*\/users$/,
      /^PUT \/files/,
      // A form with a file, and the routes above that operators have too.
      /^(POST|DELETE) \/api\/projects\/:projectId\/(files|invites)$/,
      /\/collections\/:collection\/documents(\/|$)/,
      // What is followed, which is stored nowhere.
      /^POST \/api\/realtime$/,
    ];
    const rows = ROUTE_TABLE.filter((row) => row.body !== undefined && !RECORDS.includes(row));
    const routes = rows.map(({ method, path }) => `${method} ${path}`);
    expect(routes.filter((route) => !free.some((pattern) => pattern.test(route)))).toEqual([]);
    const known = new Set(ROUTE_TABLE.map(({ method, path }) => `${method} ${path}`));
    expect(Object.keys(FIELDS).filter((route) => !known.has(route))).toEqual([]);
  });
});
