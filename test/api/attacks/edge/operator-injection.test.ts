import { afterAll, describe, expect, it } from 'vitest';
import { openRandom } from '../../../helpers/random.js';
import { drawSome } from '../../../helpers/runs.js';
import { openSeed } from '../../../helpers/seed.js';
import { use } from '../../../helpers/use.js';
import { fill, ROUTE_TABLE, routeOf, type Pass } from '../routes-table.js';
import { buildEstate, fire, openStage, outcomeOf, passFor, type Answer } from '../stage.js';

/** Every field, route and parameter meets some of the values, each others. */
const random = openRandom(openSeed('injected operators'));
const some = <T>(values: readonly T[]): T[] => drawSome(random, values, 5);

const stage = use(await openStage());
const estate = await buildEstate(stage);
afterAll(async () => {
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

function send(pass: Pass, method: string, path: string, body?: unknown): Promise<Answer> {
  return fire(stage, { method, path: fill(path, estate.names), headers: passFor(pass, estate), body });
}

/** JSON that means more than it says: to a query, to a prototype, to the driver, or to code that expects a text. */
const HOSTILE_VALUES = [
  '{"$ne":null}',
  '{"$gt":""}',
  '{"$regex":".*"}',
  '{"$where":"while(true){}"}',
  '{"$in":["",null]}',
  '{"$exists":true}',
  '{"$expr":{"$eq":[1,1]}}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"_bsontype":"ObjectId","id":"aaaaaaaaaaaa"}',
  '{"_bsontype":"Code","code":"while(true){}"}',
  '{"toString":"x","valueOf":"x"}',
  '{"length":1,"0":"a"}',
  '[{"$ne":null}]',
  '[["a"]]',
  '[[]]',
];

const FIELD = { name: 'title', type: 'String' };
const CONTACT = { email: 'a@b.co', firstName: 'A', lastName: 'B', unsubscribed: false };
const WEBHOOK = { url: 'http://127.0.0.1:9/', events: ['*'], description: 'd', enabled: true };
const PROJECT = '/api/projects/:projectId';
const COLLECTIONS = `${PROJECT}/collections`;
const AGGREGATE = '/api/data/:collectionName/aggregate';

/**
 * Every field of every body that a route reads. What may be anything by its nature (documents, variables of a mail) is
 * not here, and those of accounts are in account-bodies.test.ts.
 */
const BODIES: readonly [method: string, path: string, pass: Pass, fields: Record<string, unknown>][] = [
  ['POST', '/api/storage/upload-request', 'the secret key', { filename: 'a', contentType: 'text/plain', size: 1 }],
  ['POST', '/api/storage/upload-confirm', 'the secret key', { filePath: ':pendingPath', size: 1 }],
  ['DELETE', '/api/storage/file', 'the secret key', { path: ':path' }],
  ['POST', AGGREGATE, 'a key', { pipeline: [] }],
  ['POST', '/api/mail/send', 'the secret key', { to: 'a@b.co', subject: 's', html: 'h', text: 't', replyTo: 'a@b.co' }],
  ['POST', '/api/mail/send', 'the secret key', { to: 'a@b.co', templateId: ':templateId' }],
  ['POST', '/api/mail/send', 'the secret key', { to: 'a@b.co', templateName: ':template' }],
  ['POST', '/api/mail/audiences', 'the secret key', { name: 'all' }],
  ['POST', '/api/mail/audiences/:audience/contacts', 'the secret key', CONTACT],
  ['PATCH', '/api/mail/audiences/:audience/contacts/:contact', 'the secret key', CONTACT],
  [
    'POST',
    '/api/mail/broadcasts',
    'the secret key',
    {
      audienceId: ':audience',
      subject: 's',
      html: 'h',
      text: 't',
      from: 'a@b.co',
      scheduledAt: '2030-01-01T00:00:00Z',
    },
  ],
  ['POST', '/api/mail/broadcasts', 'the secret key', { segmentId: ':audience', subject: 's', text: 't' }],
  ['POST', '/api/mail/broadcasts/:broadcast/send', 'the secret key', { scheduledAt: '2030-01-01T00:00:00Z' }],
  [
    'POST',
    '/api/schemas',
    'the secret key',
    { name: 'new', mode: 'flexible', fields: [FIELD], rls: null, indexes: [] },
  ],
  ['POST', '/api/admin/login', 'everybody', { email: 'a@b.co', password: 'guessed', cookie: true }],
  ['POST', '/api/admin/login/link', 'everybody', { link: 'x' }],
  ['POST', '/api/admin/me/password', 'an operator', { currentPassword: 'guessed', newPassword: 'long enough' }],
  ['POST', '/api/projects', 'an owner of all projects', { name: 'new', plan: 'free', ifNotExists: true }],
  [
    'PATCH',
    PROJECT,
    'an owner of all projects',
    {
      name: 'other',
      plan: 'free',
      allowedDomains: ['*'],
      limits: {},
      providerApiKey: 're_x',
      providerFromEmail: 'a@b.co',
      providerWebhookSecret: 'whsec_0123456789abcdef',
      storage: { publishableUploads: false },
    },
  ],
  [
    'POST',
    COLLECTIONS,
    'an owner',
    { name: 'new', mode: 'flexible', fields: [FIELD], rls: { enabled: false }, indexes: [], ifNotExists: true },
  ],
  [
    'PATCH',
    `${COLLECTIONS}/:collection`,
    'an owner',
    { fields: [FIELD], mode: 'flexible', indexes: [], rls: { enabled: false } },
  ],
  ['PATCH', `${COLLECTIONS}/:collection`, 'an owner', { addFields: [FIELD], setFields: [FIELD], dropFields: ['x'] }],
  ['PUT', `${COLLECTIONS}/:collection/rls`, 'an owner', { enabled: true, mode: 'private', ownerField: 'userId' }],
  ['PUT', `${COLLECTIONS}/:collection/rules`, 'an owner', { rules: null }],
  ['POST', `${PROJECT}/rules/:collection/check`, 'an operator', { rules: { read: 'user' }, data: true }],
  ['POST', `${COLLECTIONS}/:collection/rename`, 'an owner', { name: 'other' }],
  ['POST', `${PROJECT}/keys`, 'an owner', { type: 'secret' }],
  ['POST', `${PROJECT}/keys/rotate`, 'an owner', { type: 'publishable', grace: '1h' }],
  ['PUT', `${PROJECT}/mail/templates/:template`, 'an owner', { subject: 's', html: 'h', text: 't' }],
  ['POST', `${PROJECT}/webhooks`, 'an owner', WEBHOOK],
  ['PATCH', `${PROJECT}/webhooks/:webhook`, 'an owner', WEBHOOK],
  [
    'PUT',
    `${PROJECT}/bucket`,
    'an owner',
    {
      bucket: 'files',
      accessKeyId: 'i',
      secretAccessKey: 's',
      endpoint: 'http://127.0.0.1:9',
      region: 'eu',
      publicUrl: 'http://127.0.0.1:9',
      forcePathStyle: true,
      verify: false,
    },
  ],
];

describe.each(BODIES)('%s %s', (method, path, pass, fields) => {
  it.each(Object.keys(fields))('refuses everything but a plain value as %s', async (field) => {
    for (const value of some(HOSTILE_VALUES)) {
      const text = JSON.stringify({ ...fill(fields, estate.names), [field]: '@hostile@' });
      const answer = await send(pass, method, path, text.replace('"@hostile@"', value));
      expect({ value, status: answer.status, body: answer.text }).toMatchObject({ value, status: 400 });
      expect(JSON.parse(answer.text)).toMatchObject({ success: false, data: {} });
    }
  });
});

describe('the fields of a webhook, of a collection and of a batch', () => {
  /** The value stands for the percent sign. */
  const nested: [string, Pass, string, string, string][] = [
    ['an event', 'an owner', 'POST', `${PROJECT}/webhooks`, '{"url":"http://127.0.0.1:9/","events":[%]}'],
    ['an allowed domain', 'an owner', 'PATCH', PROJECT, '{"allowedDomains":[%]}'],
    ['a limit', 'an owner of all projects', 'PATCH', PROJECT, '{"limits":{"storage":%}}'],
    ['a field’s name', 'an owner', 'POST', COLLECTIONS, '{"name":"x","fields":[{"name":%,"type":"String"}]}'],
    [
      'a field’s default',
      'an owner',
      'POST',
      COLLECTIONS,
      '{"name":"x","fields":[{"name":"a","type":"String","default":%}]}',
    ],
    ['an index', 'an owner', 'POST', COLLECTIONS, '{"name":"x","mode":"flexible","indexes":[%]}'],
    [
      'an owner field',
      'an owner',
      'PUT',
      `${COLLECTIONS}/:collection/rls`,
      '{"enabled":true,"mode":"private","ownerField":%}',
    ],
    ['a rule', 'an owner', 'PUT', `${COLLECTIONS}/:collection/rules`, '{"rules":{"read":"user","update":%}}'],
    ['a rule that is looked at', 'an operator', 'POST', `${PROJECT}/rules/:collection/check`, '{"rules":{"read":%}}'],
    [
      'a rule of a new collection',
      'an owner',
      'POST',
      COLLECTIONS,
      '{"name":"x","fields":[{"name":"a","type":"String"}],"rules":{"updateTo":%}}',
    ],
    ...['read', 'write', 'hidden', 'fixed', 'stamp'].map((mark): (typeof nested)[number] => [
      `a field’s ${mark}`,
      'an owner',
      'POST',
      COLLECTIONS,
      `{"name":"x","fields":[{"name":"a","type":"String","${mark}":%}]}`,
    ]),
    [
      'a recipient in a list',
      'the secret key',
      'POST',
      '/api/mail/send',
      '{"to":["a@b.co",%],"subject":"s","text":"t"}',
    ],
    ['a mail of a batch', 'the secret key', 'POST', '/api/mail/send-batch', '[%]'],
    [
      'a subject in a batch',
      'the secret key',
      'POST',
      '/api/mail/send-batch',
      '[{"to":"a@b.co","subject":%,"text":"t"}]',
    ],
    ['a stage', 'a key', 'POST', AGGREGATE, '{"pipeline":[%]}'],
    ['a source of a join', 'a key', 'POST', AGGREGATE, '{"pipeline":[{"$lookup":{"from":%,"pipeline":[],"as":"x"}}]}'],
    ['a limit of a pipeline', 'a key', 'POST', AGGREGATE, '{"pipeline":[{"$limit":%}]}'],
  ];
  it.each(nested)('refuse everything but a plain value as %s', async (_what, pass, method, path, body) => {
    for (const value of some(HOSTILE_VALUES)) {
      const answer = await send(
        pass,
        method,
        path,
        body.replace('%', () => value),
      );
      expect({ value, status: answer.status, body: answer.text }).toMatchObject({ value, status: 400 });
    }
  });
});

/**
 * Top-level keys besides those that a route reads. They are refused or mean nothing; they never reach a query or a
 * prototype.
 */
const EXTRA_KEYS = [
  '$where',
  '$or',
  '$set',
  'a.b',
  '__proto__',
  'constructor',
  'prototype',
  '_bsontype',
  '',
  'hasOwnProperty',
  'toString',
  '\\u0000',
];

describe('keys that a body should not have', () => {
  const bodies = ROUTE_TABLE.filter(({ body, spends }) => typeof body === 'object' && !Array.isArray(body) && !spends);
  it.each(bodies.map((row) => [`${row.method} ${row.path}`, row] as const))(
    'mean nothing at %s',
    async (_title, row) => {
      for (const key of some(EXTRA_KEYS)) {
        const plain = JSON.stringify(fill(row.body, estate.names));
        const text = `{"${key}":{"polluted":true,"$ne":null}${plain === '{}' ? '' : ','}${plain.slice(1)}`;
        const answer = await send(row.pass, row.method, row.path, text);
        // The same code is asked for again and again.
        const isRepeated = answer.status === 429 && answer.text.includes('CODE_SENT_RECENTLY');
        expect([row.allowed, '400'], `${key}: ${answer.text}`).toContain(
          answer.status === 400 ? '400' : isRepeated ? row.allowed : outcomeOf(answer),
        );
        expect(({} as Record<string, unknown>).polluted).toBeUndefined();
      }
    },
  );
});

const NO_OBJECTS = [
  'null',
  '7',
  '"text"',
  'true',
  '[]',
  '[null]',
  '[[]]',
  '',
  ' ',
  '{',
  '{"a":1}{"b":2}',
  '\u0000',
  'NaN',
  '-0',
  '1e400',
];

describe('a body that is no object', () => {
  const readers = ROUTE_TABLE.filter(({ body }) => typeof body === 'object');
  it.each(readers.map((row) => [`${row.method} ${row.path}`, row] as const))(
    'is refused at %s',
    async (_title, row) => {
      for (const text of some(NO_OBJECTS)) {
        if (text.trim() === '' && routeOf(row).route.bodyIsOptional) continue;
        const answer = await send(row.pass, row.method, row.path, text);
        expect({ text, status: answer.status, body: answer.text }).toMatchObject({ text, status: 400 });
      }
    },
  );
});

/** What no id and no name can be; with the percent sign as it goes over the wire. */
const HOSTILE_NAMES = [
  '$ne',
  '%24where',
  '%7B%22%24ne%22%3Anull%7D',
  '%7B%22%24gt%22%3A%22%22%7D',
  '__proto__',
  '%5B%5D',
  '%00',
  'a%00b',
  '..%2f..%2f',
  '%2e%2e%2f',
  '%0d%0aset-cookie:%20a=b',
  '%ff%fe',
  '%ed%a0%80',
  '%F0%9F%92%A9',
  '%',
  '%zz',
  '.',
  ';',
  '*',
  '%2a',
  "'%20or%201=1--",
  'a'.repeat(3000),
];

describe('a name in a path', () => {
  const parameters = ROUTE_TABLE.flatMap((row) =>
    [...row.path.split('?')[0]!.matchAll(/:(\w+)/g)].map(
      ([, name]) => [`${row.method} ${row.path}`, name!, row] as const,
    ),
  );
  it.each(parameters)('%s finds nothing under a hostile :%s', async (_title, name, row) => {
    // Ids of the mail provider are letters, digits, _ and -: what they mean is for the provider to know.
    const foreignIds = /^(audience|contact|broadcast)$/.test(name);
    for (const hostile of some(HOSTILE_NAMES).filter((one) => !(foreignIds && one === '__proto__'))) {
      const names = { ...estate.names, key: estate.publishable, [name]: hostile };
      const path = fill(row.path, names);
      const headers = { ...fill(row.headers ?? {}, estate.names), ...passFor(row.pass, estate) };
      const answer = await fire(stage, { method: row.method, path, headers, body: fill(row.body, estate.names) });
      expect({ path, status: answer.status, in: [400, 403, 404, 405].includes(answer.status) }).toMatchObject({
        in: true,
      });
      expect(JSON.parse(answer.text)).toMatchObject({ success: false, data: {} });
      expect(answer.headers['set-cookie'] ?? []).not.toContain('a=b');
    }
  });
});
