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

/** Names of another project inside bodies, queries, headers and cookies, where no path shows them. */
const SMUGGLED: readonly [what: string, expected: string, attack: () => Promise<Answer>][] = [
  [
    'a file path to confirm',
    '404 FILE_NOT_FOUND',
    () => mine('POST', '/api/storage/upload-confirm', { filePath: victim.names.pendingPath, size: 6 }),
  ],
  [
    'a confirmed file to confirm again',
    '404 FILE_NOT_FOUND',
    () => mine('POST', '/api/storage/upload-confirm', { filePath: victim.names.path, size: 6 }),
  ],
  [
    'a file path to delete',
    '404 FILE_NOT_FOUND',
    () => mine('DELETE', '/api/storage/file', { path: victim.names.path }),
  ],
  [
    'a file path behind an own prefix',
    '404 FILE_NOT_FOUND',
    () => mine('DELETE', '/api/storage/file', { path: `${ownId()}/../${victim.names.path}` }),
  ],
  [
    'the stored name of a collection',
    '404 COLLECTION_NOT_FOUND',
    () => mine('GET', `/api/data/documents_${victim.names.projectId}_x`),
  ],
  ['the stored name of a system collection', '404 COLLECTION_NOT_FOUND', () => mine('GET', '/api/data/projects')],
  [
    'a collection in $lookup',
    '404 COLLECTION_NOT_FOUND',
    () => pipeline({ $lookup: { from: victim.names.collection, pipeline: [], as: 'x' } }),
  ],
  [
    'a collection in $unionWith',
    '404 COLLECTION_NOT_FOUND',
    () => pipeline({ $unionWith: { coll: victim.names.collection } }),
  ],
  [
    'a collection in $unionWith, by its text alone',
    '404 COLLECTION_NOT_FOUND',
    () => pipeline({ $unionWith: victim.names.collection }),
  ],
  [
    'a collection in $graphLookup',
    '404 COLLECTION_NOT_FOUND',
    () =>
      pipeline({
        $graphLookup: {
          from: victim.names.collection,
          startWith: '$a',
          connectFromField: 'a',
          connectToField: '_id',
          as: 'x',
        },
      }),
  ],
  [
    'a stored collection inside $facet',
    '404 COLLECTION_NOT_FOUND',
    () => pipeline({ $facet: { a: [{ $unionWith: { coll: `documents_${victim.names.projectId}_x` } }] } }),
  ],
  [
    'another database in $lookup',
    '400 INVALID_PIPELINE',
    () => pipeline({ $lookup: { from: { db: 'bsvc', coll: 'projects' }, pipeline: [], as: 'x' } }),
  ],
  [
    'a template',
    '404 TEMPLATE_NOT_FOUND',
    () => mine('POST', '/api/mail/send', { to: 'a@b.co', templateId: victim.names.templateId }),
  ],
  [
    'a template by name',
    '404 TEMPLATE_NOT_FOUND',
    () => mine('POST', '/api/mail/send', { to: 'a@b.co', templateName: victim.names.template }),
  ],
  [
    'an audience',
    '403 BYOK_REQUIRED',
    () => mine('POST', '/api/mail/broadcasts', { audienceId: victim.names.audience, subject: 's', text: 't' }),
  ],
  [
    'a refresh token in the header',
    '401 REFRESH_INVALID',
    () => mine('POST', '/api/userAuth/refresh-token', undefined, { 'x-refresh-token': victim.names.refreshToken! }),
  ],
  [
    'a refresh token in the victim’s cookie',
    '401 REFRESH_INVALID',
    () =>
      mine('POST', '/api/userAuth/refresh-token', undefined, {
        cookie: `bsvc_rt_${victim.names.projectId}=${victim.names.refreshToken}`,
      }),
  ],
  [
    'a refresh token in a cookie of the own project',
    '401 REFRESH_INVALID',
    () =>
      mine('POST', '/api/userAuth/refresh-token', undefined, {
        cookie: `bsvc_rt_${ownId()}=${victim.names.refreshToken}`,
      }),
  ],
  [
    'a refresh token to sign out',
    '200',
    () => mine('POST', '/api/userAuth/logout', undefined, { 'x-refresh-token': victim.names.refreshToken! }),
  ],
  [
    'an access token at /me',
    '401 TOKEN_INVALID',
    () => mine('GET', '/api/userAuth/me', undefined, { authorization: `Bearer ${victim.user.accessToken}` }),
  ],
  [
    'an access token at update-profile',
    '401 TOKEN_INVALID',
    () =>
      mine(
        'PATCH',
        '/api/userAuth/update-profile',
        { name: 'x' },
        { authorization: `Bearer ${victim.user.accessToken}` },
      ),
  ],
  [
    'an address to reset',
    '400 OTP_INVALID',
    () =>
      mine('POST', '/api/userAuth/reset-password', {
        email: victim.names.email,
        otp: '123456',
        newPassword: 'another one',
      }),
  ],
  [
    'the victim’s id in the path of an operator',
    '404 PROJECT_NOT_FOUND',
    () => operator('GET', `/api/projects/${victim.names.projectId}`),
  ],
  [
    'the same in capitals',
    '404 PROJECT_NOT_FOUND',
    () => operator('GET', `/api/projects/${victim.names.projectId!.toUpperCase()}`),
  ],
  [
    'the victim’s name instead of its id',
    '404 PROJECT_NOT_FOUND',
    () => operator('GET', `/api/projects/${encodeURIComponent(victim.project.name)}`),
  ],
  [
    'a dotted way to the victim',
    '404 PROJECT_NOT_FOUND',
    () => operator('GET', `/api/projects/${ownId()}%2f..%2f${victim.names.projectId}`),
  ],
  [
    'a user of the victim below the own project',
    '404 USER_NOT_FOUND',
    () => operator('GET', `/api/projects/${ownId()}/users/${victim.names.user}`),
  ],
  [
    'the same by address',
    '404 USER_NOT_FOUND',
    () => operator('GET', `/api/projects/${ownId()}/users/nobody@example.test`),
  ],
  ['a key', '404 KEY_NOT_FOUND', () => operator('DELETE', `/api/projects/${ownId()}/keys/${victim.names.keyId}`)],
  [
    'a webhook',
    '404 WEBHOOK_NOT_FOUND',
    () => operator('GET', `/api/projects/${ownId()}/webhooks/${victim.names.webhook}`),
  ],
  [
    'a delivery',
    '404 WEBHOOK_NOT_FOUND',
    () =>
      operator(
        'POST',
        `/api/projects/${ownId()}/webhooks/${victim.names.webhook}/deliveries/${victim.names.delivery}/replay`,
      ),
  ],
  [
    'a collection',
    '404 COLLECTION_NOT_FOUND',
    () => operator('DELETE', `/api/projects/${ownId()}/collections/${victim.names.collection}`),
  ],
  [
    'a template',
    '404 TEMPLATE_NOT_FOUND',
    () => operator('DELETE', `/api/projects/${ownId()}/mail/templates/${victim.names.template}`),
  ],
  ['a mail', '404 NOT_FOUND', () => operator('GET', `/api/projects/${ownId()}/mail/logs/${victim.names.mail}`)],
  [
    'a session',
    '404 USER_NOT_FOUND',
    () => operator('DELETE', `/api/projects/${ownId()}/users/${victim.names.user}/sessions/${victim.names.session}`),
  ],
  [
    'a session, below a user of one’s own',
    '404 SESSION_NOT_FOUND',
    () => operator('DELETE', `/api/projects/${ownId()}/users/${stranger.user.id}/sessions/${victim.names.session}`),
  ],
  [
    'two keys in one request',
    '401 API_KEY_INVALID',
    () =>
      fire(stage, {
        method: 'GET',
        path: '/api/data/mine',
        headers: { 'x-api-key': [stranger.secret, victim.secret] },
      }),
  ],
  [
    'the victim’s key in the query',
    '401 API_KEY_MISSING',
    () => fire(stage, { method: 'GET', path: `/api/data/mine?key=${victim.publishable}&x-api-key=${victim.secret}` }),
  ],
];

const mine = (...call: Parameters<ReturnType<typeof asSecret>>) => asSecret(stage, stranger)(...call);
const operator = (method: string, path: string) =>
  callerWith(stage, { authorization: `Bearer ${stranger.operator}` })(method, path);
const pipeline = (stage: object) => mine('POST', '/api/data/mine/aggregate', { pipeline: [stage] });
const ownId = () => stranger.project._id.toHexString();

describe('a name of another project where no path shows it', () => {
  it.each(SMUGGLED)('%s: %s', async (_what, expected, attack) => {
    const answer = await attack();
    expect(outcomeOf(answer)).toBe(expected);
    expect(leaksOf(answer, victim)).toEqual([]);
  });

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
