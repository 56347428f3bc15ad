import { describe, expect, it } from 'vitest';
import { buildCollection } from '../../../helpers/build-project.js';
import { use } from '../../../helpers/use.js';
import { fill, ROUTE_TABLE, type Pass, type RouteRow } from '../routes-table.js';
import {
  asSecret,
  buildEstate,
  buildStranger,
  callerWith,
  fire,
  leaksOf,
  openStage,
  outcomeOf,
  readEverything,
  type Answer,
  type Estate,
  type Shot,
  type Stranger,
} from '../stage.js';

const stage = use(await openStage());
/** The project under attack; every text in it holds the canary. */
const victim = await buildEstate(stage);
/** The attackers' own project, with a token of every sort. */
const stranger = await buildStranger(stage);
await buildCollection(stage.app, stranger.project, { name: 'mine' });
const before = await readEverything(stage, victim);

/** What the strangers carry: each alone or beside something that belongs to the victim but is not enough. */
const STRANGERS: Record<string, (own: Stranger, other: Estate) => { key?: string; token?: string }> = {
  nobody: () => ({}),
  publishable: (own) => ({ key: own.publishable }),
  secret: (own) => ({ key: own.secret }),
  user: (own) => ({ key: own.publishable, token: own.user.accessToken }),
  'secret key with a token of the victim’s user': (own, other) => ({ key: own.secret, token: other.user.accessToken }),
  'token of the victim’s user without a key': (_own, other) => ({ token: other.user.accessToken }),
  'secret key as a bearer': (own) => ({ token: own.secret }),
  operator: (own) => ({ token: own.operator }),
  viewer: (own) => ({ token: own.viewer }),
};

/** Who of the strangers is let in with what is its own, and so gets to ask for what is not. */
const PASSES: Record<Pass, string> = {
  everybody: 'nobody',
  'a key': 'secret',
  'a key in the query': 'publishable',
  'the secret key': 'secret',
  'the secret key to write': 'secret',
  'an end user': 'secret',
  'an operator': 'operator',
  'an operator who has signed in': 'operator',
  'an owner': 'operator',
  'an operator of all projects': 'operator',
  'an owner of all projects': 'operator',
  'the admin token': 'nobody',
};

async function ask(row: RouteRow, who: string, own = stranger): Promise<Answer> {
  const { key, token } = STRANGERS[who]!(own, victim);
  return fire(stage, {
    method: row.method,
    path: fill(row.path, { ...victim.names, key: key ?? '' }),
    headers: {
      ...fill(row.headers ?? {}, victim.names),
      ...(key !== undefined && { 'x-api-key': key }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: fill(row.body, victim.names),
  });
}

describe('a stranger who names what belongs to another project', () => {
  it.each(ROUTE_TABLE.map((row) => [`${row.method} ${row.path}`, row.foreign, row] as const))(
    'at %s is told %s, and nothing by any other means',
    async (_title, foreign, row) => {
      // Signing out ends what it is called with.
      const own = row.spends ? await buildStranger(stage) : stranger;
      expect(outcomeOf(await ask(row, PASSES[row.pass], own))).toBe(foreign);
      for (const who of Object.keys(STRANGERS)) {
        const answer = await ask(row, who, own);
        expect({ who, leaks: leaksOf(answer, victim) }).toEqual({ who, leaks: [] });
        // What everybody may read, as a guide, belongs to no project.
        const isOpen = row.pass === 'everybody' && foreign === '200';
        const namesSomething = /:(?!key\b)\w+/.test(row.path.replace(/^\/files\/.*/, ''));
        if (namesSomething && !isOpen) expect(answer.status, who).toBeGreaterThanOrEqual(400);
        expect(answer.status, who).toBeLessThan(500);
      }
    },
  );

  it('changes nothing of it by all that', async () => {
    expect(await readEverything(stage, victim)).toBe(before);
  });
});

const NO_FILE = '404 FILE_NOT_FOUND';
const NO_COLLECTION = '404 COLLECTION_NOT_FOUND';
const NO_TEMPLATE = '404 TEMPLATE_NOT_FOUND';
const NO_SESSION = '401 REFRESH_INVALID';
const NO_TOKEN = '401 TOKEN_INVALID';
const NO_PROJECT = '404 PROJECT_NOT_FOUND';
const NO_USER = '404 USER_NOT_FOUND';
const BEARER = { authorization: 'Bearer :token' };
const GRAPH = { from: ':collection', startWith: '$a', connectFromField: 'a', connectToField: '_id', as: 'x' };
const inPipeline = (stage: object): [string, object] => ['POST data/mine/aggregate', { pipeline: [stage] }];
const refresh = (headers: Record<string, string>): [string, undefined, Record<string, string>] => [
  'POST userAuth/refresh-token',
  undefined,
  headers,
];
const own = stranger.project._id.toHexString();
const names = {
  ...victim.names,
  own,
  self: stranger.user.id,
  token: victim.user.accessToken,
  capitals: victim.names.projectId!.toUpperCase(),
  called: encodeURIComponent(victim.project.name),
  key: victim.publishable,
  secret: victim.secret,
};

/** Names of another project inside bodies, queries, headers and cookies, where no path shows them; by a secret key. */
const SMUGGLED: [what: string, expected: string, request: string, body?: unknown, headers?: Record<string, string>][] =
  [
    ['a file path to confirm', NO_FILE, 'POST storage/upload-confirm', { filePath: ':pendingPath', size: 6 }],
    ['a confirmed file to confirm again', NO_FILE, 'POST storage/upload-confirm', { filePath: ':path', size: 6 }],
    ['a file path to delete', NO_FILE, 'DELETE storage/file', { path: ':path' }],
    ['a file path behind an own prefix', NO_FILE, 'DELETE storage/file', { path: ':own/../:path' }],
    ['the stored name of a collection', NO_COLLECTION, 'GET data/documents_:projectId_x'],
    ['the stored name of a system collection', NO_COLLECTION, 'GET data/projects'],
    [
      'a collection in $lookup',
      NO_COLLECTION,
      ...inPipeline({ $lookup: { from: ':collection', pipeline: [], as: 'x' } }),
    ],
    ['a collection in $unionWith', NO_COLLECTION, ...inPipeline({ $unionWith: { coll: ':collection' } })],
    ['a collection in $unionWith, by its text alone', NO_COLLECTION, ...inPipeline({ $unionWith: ':collection' })],
    ['a collection in $graphLookup', NO_COLLECTION, ...inPipeline({ $graphLookup: GRAPH })],
    [
      'a stored collection inside $facet',
      NO_COLLECTION,
      ...inPipeline({ $facet: { a: [{ $unionWith: { coll: 'documents_:projectId_x' } }] } }),
    ],
    [
      'another database in $lookup',
      '400 INVALID_PIPELINE',
      ...inPipeline({ $lookup: { from: { db: 'bsvc', coll: 'projects' }, pipeline: [], as: 'x' } }),
    ],
    ['a template', NO_TEMPLATE, 'POST mail/send', { to: 'a@b.co', templateId: ':templateId' }],
    ['a template by name', NO_TEMPLATE, 'POST mail/send', { to: 'a@b.co', templateName: ':template' }],
    ['an audience', '403 BYOK_REQUIRED', 'POST mail/broadcasts', { audienceId: ':audience', subject: 's', text: 't' }],
    ['a refresh token in the header', NO_SESSION, ...refresh({ 'x-refresh-token': ':refreshToken' })],
    ['one in the victim’s cookie', NO_SESSION, ...refresh({ cookie: 'bsvc_rt_:projectId=:refreshToken' })],
    ['one in a cookie of the own project', NO_SESSION, ...refresh({ cookie: 'bsvc_rt_:own=:refreshToken' })],
    ['one to sign out', '200', 'POST userAuth/logout', undefined, { 'x-refresh-token': ':refreshToken' }],
    ['an access token at /me', NO_TOKEN, 'GET userAuth/me', undefined, BEARER],
    ['an access token at update-profile', NO_TOKEN, 'PATCH userAuth/update-profile', { name: 'x' }, BEARER],
    [
      'an address to reset',
      '400 OTP_INVALID',
      'POST userAuth/reset-password',
      { email: ':email', otp: '123456', newPassword: 'another one' },
    ],
  ];

/** The same by an operator of another project, below `/api/projects/`. */
const BELOW_PROJECTS: [what: string, expected: string, request: string][] = [
  ['the victim’s id in the path of an operator', NO_PROJECT, 'GET :projectId'],
  ['the same in capitals', NO_PROJECT, 'GET :capitals'],
  ['the victim’s name instead of its id', NO_PROJECT, 'GET :called'],
  ['a dotted way to the victim', NO_PROJECT, 'GET :own%2f..%2f:projectId'],
  ['a user of the victim below the own project', NO_USER, 'GET :own/users/:user'],
  ['the same by address', NO_USER, 'GET :own/users/nobody@example.test'],
  ['a key', '404 KEY_NOT_FOUND', 'DELETE :own/keys/:keyId'],
  ['a webhook', '404 WEBHOOK_NOT_FOUND', 'GET :own/webhooks/:webhook'],
  ['a delivery', '404 WEBHOOK_NOT_FOUND', 'POST :own/webhooks/:webhook/deliveries/:delivery/replay'],
  ['a collection', NO_COLLECTION, 'DELETE :own/collections/:collection'],
  ['a template', NO_TEMPLATE, 'DELETE :own/mail/templates/:template'],
  ['a mail', '404 NOT_FOUND', 'GET :own/mail/logs/:mail'],
  ['a session', NO_USER, 'DELETE :own/users/:user/sessions/:session'],
  ['a session, below a user of one’s own', '404 SESSION_NOT_FOUND', 'DELETE :own/users/:self/sessions/:session'],
];

/** By keys of both projects at once. */
const BY_KEYS: [what: string, expected: string, request: string, keys: string[]][] = [
  ['two keys in one request', '401 API_KEY_INVALID', 'GET data/mine', [stranger.secret, victim.secret]],
  ['the victim’s key in the query', '401 API_KEY_MISSING', 'GET data/mine?key=:key&x-api-key=:secret', []],
];

describe('a name of another project where no path shows it', () => {
  async function expectNothing(expected: string, below: string, request: string, shot: Omit<Shot, 'method' | 'path'>) {
    const [method, path] = request.split(' ') as [string, string];
    const answer = await fire(stage, fill({ method, path: below + path, ...shot }, names));
    expect(outcomeOf(answer)).toBe(expected);
    expect(leaksOf(answer, victim)).toEqual([]);
  }

  it.each(SMUGGLED)('%s: %s', (_what, expected, request, body, headers) =>
    expectNothing(expected, '/api/', request, { body, headers: { 'x-api-key': stranger.secret, ...headers } }),
  );

  it.each(BELOW_PROJECTS)('%s: %s', (_what, expected, request) =>
    expectNothing(expected, '/api/projects/', request, { headers: { authorization: `Bearer ${stranger.operator}` } }),
  );

  it.each(BY_KEYS)('%s: %s', (_what, expected, request, keys) =>
    expectNothing(expected, '/api/', request, { headers: keys.length > 0 ? { 'x-api-key': keys } : {} }),
  );

  it('changes nothing there', async () => {
    expect(await readEverything(stage, victim)).toBe(before);
  });
});

describe('the canary', () => {
  it('is seen by its owner, so that its absence elsewhere means something', async () => {
    const own = asSecret(stage, victim);
    const asOperator = callerWith(stage, { authorization: `Bearer ${victim.operator}` });
    const inside = `/api/projects/${victim.names.projectId}`;
    const seen = await Promise.all([
      own('GET', `/api/data/${victim.names.collectionName}`),
      own('GET', '/api/mail/logs'),
      own('GET', '/api/mail/audiences'),
      asOperator('GET', `${inside}/users`),
      asOperator('GET', `${inside}/webhooks`),
      asOperator('GET', `${inside}/mail/templates/own`),
      asOperator('GET', inside),
      fire(stage, { method: 'GET', path: `/files/${victim.names.path}` }),
    ]);
    expect(seen.map(({ status, text }) => [status, text.includes('canary')])).toEqual(seen.map(() => [200, true]));
  });
});
