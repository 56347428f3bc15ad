import { ObjectId } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { forgetCollection, requireStoredCollection } from '../world/collections.js';
import { drainJobs, removeFromOutbox } from '../world/jobs.js';
import { sendTestMail, setMailSettings } from '../world/projects.js';
import { collectionStore, payloadStore } from '../world/stored.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { settleWebhooks } from '../helpers/build-webhook.js';
import { startMailProviderDouble } from '../helpers/mail-provider-double.js';
import { buildOperator, type Method } from '../helpers/operator-client.js';
import { openS3Double } from '../helpers/s3-double.js';
import { useTestApp } from '../helpers/use.js';
// Errors that the API's document lists and no other test of the API meets (helpers/demand-refusals.ts).

const [provider, bucket] = await Promise.all([startMailProviderDouble(), openS3Double()]);
const test = await useTestApp({
  settings: {
    BSVC_BCRYPT_COST: '4',
    BSVC_MAIL_RATE: 'off',
    BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
    RESEND_BASE_URL: provider.url,
  },
});
const { call } = await buildOperator(test);
const owner = await buildProject(test.app);
const path = `/api/projects/${owner.project._id.toHexString()}`;
const notes = await buildCollection(test.app, owner.project, {
  name: 'notes',
  fields: [{ name: 'text', type: 'String' }],
});
await placeDocuments(test.app, notes, [{ text: 'twice' }, { text: 'twice' }]);
await buildCollection(test.app, owner.project, { name: 'others' });
const dropping = await buildCollection(test.app, owner.project, { name: 'dropping' });
await collectionStore(test.app).updateOne({ _id: dropping._id }, { $set: { state: 'dropping' } });
afterAll(async () => {
  await Promise.all([provider.close(), bucket.close()]);
});

async function refusalOf(method: Method, address: string, body?: unknown): Promise<string> {
  const { status, body: answer } = await call(method, address, body);
  return `${status} ${(answer as { code?: string }).code}`;
}

const idOf = (body: unknown): string => {
  const { data, ...own } = body as { data?: { id?: string; _id?: string }; id?: string; _id?: string };
  return (data?.id ?? data?._id ?? own.id ?? own._id)!;
};
const declare = (collection: object): object => ({ format: 'bsvc-schema/1', collections: [collection] });
const text = (name: string): object => ({ name, type: 'String' });

describe('what operators are refused below /api/projects/:projectId', () => {
  const refused: [Method, string, unknown, string][] = [
    ['patch', '', { limits: { mail: 2 ** 60 } }, '400 INVALID_LIMIT'],
    ['patch', '', { name: '?' }, '400 INVALID_NAME'],
    ['patch', '?verify=maybe', { name: 'shop' }, '400 INVALID_QUERY'],
    ['put', '/schema?dryRun=maybe', declare({ name: 'a', fields: [text('a')] }), '400 INVALID_QUERY'],
    ['get', '/collections/notes/documents?limit=none', undefined, '400 INVALID_QUERY'],
    ['get', '/collections?sizes=maybe', undefined, '400 INVALID_QUERY'],
    ['post', '/collections/notes/documents/aggregate?include_deleted=maybe', { pipeline: [{}] }, '400 INVALID_QUERY'],
    ['get', '/collections/notes/documents/export?include_deleted=maybe', undefined, '400 INVALID_QUERY'],
    ['post', '/collections/notes/documents/import?dryRun=maybe', { documents: [{}] }, '400 INVALID_QUERY'],
    ['post', '/collections/others/rename', { name: '1st' }, '400 INVALID_NAME'],
    ['patch', '?verify=true', { providerApiKey: 're_refused' }, '400 MAIL_KEY_REFUSED'],
    ['put', '/schema', declare({ name: '1st', fields: [text('a')] }), '400 INVALID_NAME'],
    ['put', '/schema', declare({ name: 'a', fields: [text('a')], indexes: ['b'] }), '400 INVALID_INDEX'],
    ['put', '/schema', declare({ name: 'a', fields: [{ ...text('a'), default: 1 }] }), '400 VALIDATION_FAILED'],
    ['put', '/schema', declare({ name: 'users', fields: [text('email')] }), '409 CONFIRMATION_REQUIRED'],
    ['put', '/schema?prune=true', declare({ name: 'users', fields: [text('email')] }), '400 USERS_CONTRACT'],
    ['put', '/schema', declare({ name: 'notes', fields: [{ ...text('text'), unique: true }] }), '409 DUPLICATE_VALUE'],
    ['put', '/schema', declare({ name: 'dropping', fields: [text('a')] }), '409 COLLECTION_DROPPING'],
    [
      'put',
      '/schema',
      {
        format: 'bsvc-schema/1',
        collections: [
          { name: 'a', fields: [text('a')] },
          { name: 'a', fields: [text('a')] },
        ],
      },
      '400 INVALID_FILE',
    ],
    ['post', '/collections', { name: 'a', fields: [text('a')], indexes: ['b'] }, '400 INVALID_INDEX'],
    ['post', '/collections', { name: 'dropping', fields: [text('a')] }, '409 COLLECTION_DROPPING'],
    ['patch', '/collections/notes', { indexes: ['b'] }, '400 INVALID_INDEX'],
    ['patch', '/collections/notes', { addFields: [{ ...text('a'), default: 1 }] }, '400 VALIDATION_FAILED'],
    ['patch', '/collections/notes', { addFields: [text('text')] }, '409 FIELD_EXISTS'],
    ['patch', '/collections/notes', { dropFields: ['nothing'] }, '404 FIELD_NOT_FOUND'],
    ['patch', '/collections/users', { dropFields: ['email'] }, '400 USERS_CONTRACT'],
    ['put', '/collections/users/rls', { mode: 'private', ownerField: 'a' }, '400 USERS_CONTRACT'],
    ['post', '/collections/notes/rename', { name: 'others' }, '409 COLLECTION_EXISTS'],
    ['get', '/collections/notes/documents?cursor=nonsense', undefined, '400 INVALID_CURSOR'],
    ['get', '/collections/users/documents/export', undefined, '403 USERS_BLOCKED'],
    ['post', '/collections/notes/documents/explain', { query: 'limit=none' }, '400 INVALID_QUERY'],
    ['post', '/collections/notes/documents/explain', { pipeline: [{ $match: 1 }] }, '400 INVALID_PIPELINE'],
    ['post', '/collections/notes/documents/explain', { pipeline: [{ $out: 'x' }] }, '400 BLOCKED_STAGE'],
    ['post', '/collections/users/documents/explain', { query: '' }, '403 USERS_BLOCKED'],
    ['post', '/collections/users/documents/import', { documents: [{}] }, '403 USERS_BLOCKED'],
  ];

  it.each(refused)('%s %s with %j is %s', async (method, below, body, outcome) => {
    expect(await refusalOf(method, path + below, body)).toBe(outcome);
  });

  it('a bucket that has no such name, or does not let anybody in', async () => {
    const { bucket: name, endpoint, region, accessKeyId, forcePathStyle } = bucket.access;
    const access = { bucket: name, endpoint, region, accessKeyId, secretAccessKey: 'another', forcePathStyle };
    expect(await refusalOf('put', `${path}/bucket`, { ...access, bucket: 'No' })).toBe('400 INVALID_BUCKET');
    expect(await refusalOf('put', `${path}/bucket`, access)).toBe('400 BUCKET_UNUSABLE');
  });

  it('a webhook’s description that is too long, and deliveries of one that is disabled', async () => {
    const settings = { url: 'http://127.0.0.1:1/', events: ['*'] };
    const { body } = await call('post', `${path}/webhooks`, settings).expect(201);
    const webhook = `${path}/webhooks/${(body as { data: { id: string } }).data.id}`;
    expect(await refusalOf('patch', webhook, { description: 'a'.repeat(10_000) })).toBe('400 VALIDATION_FAILED');
    const ping = await call('post', `${webhook}/test`).expect(200);
    await call('patch', webhook, { enabled: false }).expect(200);
    const delivery = (ping.body as { data: { id: string } }).data.id;
    expect(await refusalOf('post', `${webhook}/deliveries/${delivery}/replay`)).toBe('409 WEBHOOK_DISABLED');
  });

  it('a delivery whose payload is no longer kept, and the text of a mail that has left', async () => {
    const { body } = await call('post', `${path}/webhooks`, { url: 'http://127.0.0.1:1/', events: ['*'] }).expect(201);
    const webhook = `${path}/webhooks/${idOf(body)}`;
    await call('post', `${path}/collections/others/documents`, {}).expect(201);
    await settleWebhooks(test.app);
    const { body: deliveries } = await call('get', `${webhook}/deliveries`).expect(200);
    const [delivery] = (deliveries as { data: { items: { id: string }[] } }).data.items;
    await payloadStore(test.app).deleteMany({});
    expect(await refusalOf('post', `${webhook}/deliveries/${delivery!.id}/replay`)).toBe('409 PAYLOAD_REMOVED');
    const { id } = await sendTestMail(test.app, owner.project, 'ann@example.test');
    await drainJobs(test.app);
    await removeFromOutbox(test.app, [id]);
    expect(await refusalOf('post', `${path}/mail/logs/${id}/text`)).toBe('404 MAIL_TEXT_GONE');
  });

  it('addresses and unique values of users that are taken', async () => {
    await call('patch', `${path}/collections/users`, { addFields: [{ ...text('nick'), unique: true }] }).expect(200);
    const user = (name: string) => ({ email: `${name}@example.test`, password: 'correct horse', nick: name });
    await call('post', `${path}/users`, user('ada')).expect(201);
    await call('post', `${path}/users`, user('bob')).expect(201);
    const bob = `${path}/users/bob@example.test`;
    expect(await refusalOf('post', `${path}/users`, { ...user('cid'), nick: 'ada' })).toBe('409 DUPLICATE_VALUE');
    expect(await refusalOf('patch', bob, { nick: 'ada' })).toBe('409 DUPLICATE_VALUE');
    expect(await refusalOf('patch', bob, { email: 'ada@example.test' })).toBe('409 EMAIL_TAKEN');
    const headers = { 'x-api-key': owner.publishable, 'content-type': 'application/json' };
    const send = async (method: string, route: string, body: object, more: object = {}): Promise<Response> =>
      fetch(`${test.url}/api/userAuth/${route}`, {
        method,
        headers: { ...headers, ...more },
        body: JSON.stringify(body),
      });
    const { accessToken } = (await (await send('POST', 'login', user('bob'))).json()) as { accessToken: string };
    const bearer = { authorization: `Bearer ${accessToken}` };
    expect((await send('PATCH', 'update-profile', { nick: 'ada' }, bearer)).status).toBe(409);
  });

  it('an index that a stored document does not fit, and a trashed document that fits no index made since', async () => {
    await buildCollection(test.app, owner.project, { name: 'pairs' });
    const pairs = `${path}/collections/pairs`;
    const data = (method: string, below: string, body?: object): Promise<Response> =>
      fetch(`${test.url}/api/data/pairs${below}`, {
        method,
        headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
    const stored = await data('POST', '', { tags: ['a'], labels: ['b'] });
    const { _id } = (await stored.json()) as { _id: string };
    const indexes = ['tags,labels'];
    expect(await refusalOf('patch', pairs, { indexes })).toBe('409 INDEX_REFUSED');
    const declared = declare({ name: 'pairs', mode: 'flexible', fields: [text('a')], indexes });
    expect(await refusalOf('put', `${path}/schema`, declared)).toBe('409 INDEX_REFUSED');
    await data('DELETE', `/${_id}`);
    await call('patch', pairs, { indexes }).expect(200);
    const recovered = await data('PATCH', `/${_id}/recover`);
    expect([recovered.status, ((await recovered.json()) as { code: string }).code]).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('a sign-in provider at a private address, unless they see all projects', async () => {
    const guarded = await useTestApp();
    const { project } = await buildProject(guarded.app);
    const operator = await buildOperator(guarded, 'owner', [project]);
    const { status, body } = await operator.call('put', `/api/projects/${project._id.toHexString()}/social/own`, {
      issuer: 'https://127.0.0.1',
      clientId: 'id',
      clientSecret: 'secret',
      redirectUrls: ['https://app.example.test/'],
    });
    expect([status, (body as { code: string }).code]).toEqual([400, 'PRIVATE_ADDRESS']);
  });

  it('more keys than a project may have', async () => {
    const { project } = await buildProject(test.app);
    const keys = `/api/projects/${project._id.toHexString()}/keys`;
    let last = '';
    for (let made = 0; made < 60 && last !== '409 KEY_LIMIT'; made++)
      last = await refusalOf('post', keys, { type: 'secret' });
    expect(last).toBe('409 KEY_LIMIT');
    expect(await refusalOf('post', `${keys}/rotate`, { type: 'secret', grace: '1h' })).toBe('409 KEY_LIMIT');
  });
});

describe('what operators are refused of collections that lean on each other', () => {
  let collections: string;
  const ref = (name: string, to: string, more: object = {}): object => ({ name, type: 'Ref', ref: to, ...more });
  const add = (name: string, fields: object[], more: object = {}): [Method, string, unknown] => [
    'post',
    collections,
    { name, fields, ...more },
  ];
  const refusedTo = async ([method, address, body]: [Method, string, unknown]) => refusalOf(method, address, body);

  beforeAll(async () => {
    const { project } = await buildProject(test.app);
    collections = `/api/projects/${project._id.toHexString()}/collections`;
    const made: [string, object[], object?][] = [
      ['boards', [text('owner'), text('board')]],
      ['cards', [text('board')], { rules: { read: 'doc.board in boards[owner = user.id].board' } }],
      ['tags', [text('label')]],
      ['notes', [ref('tag', 'tags', { check: true }), text('text')]],
      ['parts', [ref('tag', 'tags', { onDelete: 'remove' })]],
    ];
    for (const [name, fields, more] of made) {
      await call('post', collections, { name, fields, ...more }).expect(201);
    }
  });

  it('rules that are none, that name nothing, or stand beside row-level security', async () => {
    const rls = { mode: 'private', ownerField: 'userId' };
    expect(await refusedTo(add('a', [text('a')], { rules: { read: 'anyone' }, rls }))).toBe('400 INVALID_RULES');
    expect(await refusedTo(add('a', [text('a')], { rules: { read: 'doc.b = user.id' } }))).toBe('400 INVALID_RULE');
    await call('post', `${collections}/notes/documents`, { text: 'long' }).expect(201);
    const loose = { mode: 'flexible', fields: [], access: 'public' };
    await call('post', collections, { name: 'loose', ...loose }).expect(201);
    await call('post', `${collections}/loose/documents`, { owner: 5 }).expect(201);
    await call('patch', `${collections}/loose`, { addFields: [text('owner')] }).expect(200);
    const rules = { rules: { read: 'doc.owner = user.id' } };
    expect(await refusalOf('put', `${collections}/loose/rules`, rules)).toBe('409 RULE_VIOLATIONS');
  });

  it('constraints of fields that are not there, or that stored documents break', async () => {
    expect(await refusedTo(add('a', [text('a')], { uniques: [['a', 'b']] }))).toBe('400 INVALID_UNIQUE');
    const setFields = [{ ...text('text'), maxLength: 2 }];
    expect(await refusalOf('patch', `${collections}/notes`, { setFields })).toBe('409 CONSTRAINT_VIOLATIONS');
  });

  it('the same in a change, in new rules and in a schema of all collections', async () => {
    const at = (name: string): string => `${collections}/${name}`;
    const rules = (text: string): object => ({ rules: { read: text } });
    const apply = (collection: object): Promise<string> =>
      refusalOf('put', collections.replace('/collections', '/schema?confirm=yes'), declare(collection));
    const notes = { name: 'notes', fields: [ref('tag', 'tags', { check: true }), text('text')] };
    const changed: [Promise<string>, string][] = [
      [refusalOf('patch', at('notes'), { uniques: [['text', 'b']] }), '400 INVALID_UNIQUE'],
      [refusalOf('patch', at('boards'), { dropFields: ['owner'] }), '409 NAMED_BY_RULE'],
      [
        refusalOf('patch', at('notes'), { addFields: [ref('part', 'parts', { onDelete: 'restrict' })] }),
        '400 INVALID_REFERENCE',
      ],
      [refusalOf('put', at('notes/rules'), rules('doc.b = 1')), '400 INVALID_RULE'],
      [refusalOf('put', at('users/rules'), rules('anyone')), '400 INVALID_RULES'],
      [refusalOf('put', at('cards/rules'), rules('anyone')), '409 CONFIRMATION_REQUIRED'],
      [refusalOf('post', at('boards/rename'), { name: 'planks' }), '409 NAMED_BY_RULE'],
      [refusalOf('post', at('tags/rename'), { name: 'labels' }), '409 REFERRED_TO'],
      [apply({ ...notes, rules: { read: 'doc.b = 1' } }), '400 INVALID_RULE'],
      [apply({ ...notes, rules: { read: 'anyone' }, rls: { mode: 'private', ownerField: 'a' } }), '400 INVALID_RULES'],
      [apply({ ...notes, fields: [ref('part', 'parts', { onDelete: 'restrict' })] }), '400 INVALID_REFERENCE'],
      [
        apply({ ...notes, fields: [...notes.fields.slice(0, 1), { ...text('text'), maxLength: 2 }] }),
        '409 CONSTRAINT_VIOLATIONS',
      ],
    ];
    expect(await Promise.all(changed.map(([outcome]) => outcome))).toEqual(changed.map(([, wanted]) => wanted));
  });

  it('to drop what rules or references name, or its log', async () => {
    expect(await refusalOf('delete', `${collections}/boards?confirm=boards`)).toBe('409 NAMED_BY_RULE');
    expect(await refusalOf('put', `${collections}/boards/changes`, { on: false })).toBe('409 RULES_NEED_LOG');
    expect(await refusalOf('delete', `${collections}/tags?confirm=tags`)).toBe('409 REFERRED_TO');
    // Parts go with their tag, so nothing can hold a part.
    const held = [ref('part', 'parts', { onDelete: 'restrict' })];
    expect(await refusedTo(add('holders', held))).toBe('400 INVALID_REFERENCE');
  });
});

describe('what a project’s secret key is refused', () => {
  const refused: [string, unknown, string][] = [
    ['/api/schemas', { name: 'dropping', fields: [text('a')] }, '409 COLLECTION_DROPPING'],
    ['/api/mail/send-batch', [{ to: 'a@b.co', subject: 's', text: 't' }], '400 SENDER_MISSING'],
    ['/api/mail/broadcasts', { audienceId: 'a1', subject: 's', text: 't' }, '400 SENDER_MISSING'],
  ];

  const refusalWithKey = async (address: string, body: unknown): Promise<string> => {
    const reply = await fetch(test.url + address, {
      method: 'POST',
      headers: { 'x-api-key': owner.secret, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return `${reply.status} ${((await reply.json()) as { code: string }).code}`;
  };

  it.each(refused)('POST %s with %j is %s', async (address, body, outcome) => {
    await setMailSettings(test.app, owner.project, { providerApiKey: 're_own' });
    expect(await refusalWithKey(address, body)).toBe(outcome);
  });

  it('a write that refers to more documents than are looked for, and roles where the project keeps its own', async () => {
    await buildCollection(test.app, owner.project, {
      name: 'lists',
      fields: [{ name: 'notes', type: 'Array', items: { type: 'Ref', ref: 'notes', check: true } }],
    });
    const notes = Array.from({ length: 1_001 }, () => new ObjectId().toHexString());
    expect(await refusalWithKey('/api/data/lists', { notes })).toBe('400 TOO_MANY_REFERENCES');
    const before = await buildProject(test.app);
    const users = await requireStoredCollection(test.app, before.project._id, 'users');
    const { body } = await call('post', `/api/projects/${before.project._id.toHexString()}/users`, {
      email: 'ada@example.test',
      password: 'correct horse',
    }).expect(201);
    // As a version did that did not know roles.
    const own = { name: 'roles', type: 'String' as const };
    await collectionStore(test.app).updateOne({ _id: users._id }, { $push: { fields: own } });
    forgetCollection(test.app, users);
    const roles = `/api/projects/${before.project._id.toHexString()}/users/${idOf(body)}/roles`;
    expect(await refusalOf('put', roles, { roles: ['admin'] })).toBe('409 ROLES_FIELD');
  });

  it('by the quota of mails', async () => {
    const broadcast = { audienceId: 'a1', from: 'a@b.co', subject: 's', text: 't' };
    await call('patch', path, { limits: { mail: 0 } }).expect(200);
    const later = { ...broadcast, scheduledAt: new Date(Date.now() + 3_600_000).toISOString() };
    await setMailSettings(test.app, owner.project, { providerApiKey: 're_own' });
    expect(await refusalWithKey('/api/mail/broadcasts', later)).toBe('429 MAIL_QUOTA_EXCEEDED');
  });
});
