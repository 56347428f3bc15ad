import { describe, expect, it } from 'vitest';
import { fill, type Pass } from './routes-table.js';
import { buildEstate, fire, openStage, outcomeOf, passFor, type Answer } from './stage.js';
import { use } from '../../helpers/use.js';

const stage = use(await openStage());
const estate = await buildEstate(stage);

function send(pass: Pass, method: string, path: string, body?: unknown): Promise<Answer> {
  return fire(stage, { method, path: fill(path, estate.names), headers: passFor(pass, estate), body });
}

/** Query strings that try to be more than texts, beyond those of lists of documents, which have tests of their own. */
const QUERIES: readonly [method: string, path: string, pass: Pass, query: string, outcome: string][] = [
  ['GET', '/api/mail/logs', 'the secret key', 'page[$gt]=0', '200'],
  ['GET', '/api/mail/logs', 'the secret key', 'page=1&page=2', '400 INVALID_QUERY'],
  ['GET', '/api/mail/logs', 'the secret key', 'limit=-1', '400 INVALID_QUERY'],
  ['GET', '/api/mail/logs', 'the secret key', 'limit=1e9', '400 INVALID_QUERY'],
  ['GET', '/api/mail/logs', 'the secret key', 'limit=NaN', '400 INVALID_QUERY'],
  ['GET', '/api/mail/logs', 'the secret key', 'page=999999', '200'],
  ['GET', '/api/mail/logs', 'the secret key', 'projectId=:projectId&filter={"$ne":1}', '200'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'email[$ne]=', '200'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'email={"$ne":null}', '200'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'email=%00', '200'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'email=a&email=b', '400 INVALID_QUERY'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'email=.*', '200'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'limit=0', '400 INVALID_QUERY'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'page=-0', '400 INVALID_QUERY'],
  ['GET', '/api/projects/:projectId/users', 'an operator', 'page=1e400', '400 INVALID_QUERY'],
  ['GET', '/api/projects/:projectId/webhooks/:webhook/deliveries', 'an operator', 'state[$ne]=x', '200'],
  [
    'GET',
    '/api/projects/:projectId/webhooks/:webhook/deliveries',
    'an operator',
    'state={"$ne":"x"}',
    '400 INVALID_QUERY',
  ],
  [
    'GET',
    '/api/projects/:projectId/webhooks/:webhook/deliveries',
    'an operator',
    'before={"$ne":"x"}',
    '400 INVALID_QUERY',
  ],
  [
    'GET',
    '/api/projects/:projectId/webhooks/:webhook/deliveries',
    'an operator',
    'before=a&before=b',
    '400 INVALID_QUERY',
  ],
  [
    'GET',
    '/api/projects/:projectId/webhooks/:webhook/deliveries',
    'an operator',
    'limit=Infinity',
    '400 INVALID_QUERY',
  ],
  ['GET', '/api/projects/:projectId/webhooks/:webhook/deliveries', 'an operator', 'limit=0x10', '400 INVALID_QUERY'],
  ['GET', '/api/projects/:projectId/webhooks/:webhook/deliveries', 'an operator', 'limit=', '400 INVALID_QUERY'],
  ['GET', '/api/admin/audit', 'an operator of all projects', 'action[$ne]=x', '200'],
  ['GET', '/api/admin/audit', 'an operator of all projects', 'action=a&action=b', '400 INVALID_QUERY'],
  ['GET', '/api/admin/audit', 'an operator of all projects', 'since=99999999999999999999d', '200'],
  ['GET', '/api/admin/audit', 'an operator of all projects', 'since=9999999999d', '200'],
  ['GET', '/api/admin/audit', 'an operator of all projects', 'since=NaN', '400 INVALID_QUERY'],
  ['PATCH', '/api/projects/:projectId', 'an owner', 'verify[$ne]=1', '400 VALIDATION_FAILED'],
  ['PATCH', '/api/projects/:projectId/collections/:collection', 'an owner', 'check=1', '400 INVALID_QUERY'],
  ['POST', '/api/data/:collectionName/aggregate', 'a key', 'include_deleted[$ne]=x', '400 INVALID_PIPELINE'],
  ['DELETE', '/api/data/:collectionName/:document', 'the secret key to write', 'permanent=1', '400 INVALID_QUERY'],
  [
    'DELETE',
    '/api/data/:collectionName/:document',
    'the secret key to write',
    'permanent=true&permanent=true',
    '400 INVALID_QUERY',
  ],
  ['GET', '/api/data/:collectionName/:document', 'a key', 'include_deleted[$ne]=x', '400 INVALID_QUERY'],
  ['GET', '/api/data/:collectionName/:document', 'a key', '__proto__=x', '400 INVALID_QUERY'],
  ['GET', '/api/data/:collectionName/:document', 'a key', 'fields=$where', '400 INVALID_QUERY'],
  ['GET', '/api/data/:collectionName/:document', 'a key', 'fields=_bsvc', '400 INVALID_QUERY'],
  ['GET', '/api/userAuth/social/:provider/callback', 'everybody', 'state[$ne]=x', '400 SOCIAL_STATE_INVALID'],
  [
    'GET',
    '/api/userAuth/social/:provider/callback',
    'everybody',
    'state=%00&code={"$ne":1}',
    '400 SOCIAL_STATE_INVALID',
  ],
  [
    'GET',
    '/api/userAuth/social/:provider/callback',
    'everybody',
    `state=${'a'.repeat(9000)}`,
    '400 SOCIAL_STATE_INVALID',
  ],
  ['GET', '/api/userAuth/social/:provider/start', 'everybody', 'key[$ne]=x', '401 API_KEY_MISSING'],
  ['GET', '/api/userAuth/social/:provider/start', 'everybody', 'key=a&key=b', '401 API_KEY_MISSING'],
  ['GET', '/api/userAuth/social/:provider/start', 'everybody', 'key=:key&redirect[$ne]=x', '302'],
  [
    'GET',
    '/api/userAuth/social/:provider/start',
    'everybody',
    'key=:key&redirect=https://evil.test/',
    '400 REDIRECT_NOT_ALLOWED',
  ],
  [
    'GET',
    '/api/userAuth/social/:provider/start',
    'everybody',
    'key=:key&redirect=https://app.example.test/.evil.test',
    '400 REDIRECT_NOT_ALLOWED',
  ],
  ['GET', '/api/userAuth/social/:provider/start', 'everybody', 'key=:key&redirect=https://app.example.test%2f', '302'],
  [
    'GET',
    '/api/userAuth/social/:provider/start',
    'everybody',
    'key=:key&redirect=//evil.test',
    '400 REDIRECT_NOT_ALLOWED',
  ],
  [
    'GET',
    '/api/userAuth/social/:provider/start',
    'everybody',
    'key=:key&redirect=javascript:alert(1)',
    '400 REDIRECT_NOT_ALLOWED',
  ],
  [
    'GET',
    '/api/userAuth/social/:provider/start',
    'everybody',
    'key=:key&redirect=%0d%0aset-cookie:a=b',
    '400 REDIRECT_NOT_ALLOWED',
  ],
  ['POST', '/api/mail/webhook', 'everybody', 'project[$ne]=x', '400 INVALID_SIGNATURE'],
  ['POST', '/api/mail/webhook', 'everybody', 'project=%00', '200'],
];

describe('a query string', () => {
  it.each(QUERIES)('%s %s, as %s, with ?%s: %s', async (method, path, pass, query, outcome) => {
    const body = method === 'GET' || method === 'DELETE' ? undefined : {};
    const written = encodeURI(fill(query, { ...estate.names, key: estate.publishable })).replaceAll('%25', '%');
    const answer = await send(pass, method, `${path}?${written}`, body);
    expect(outcomeOf(answer)).toBe(outcome);
  });

  it('that names a prefix of an address by an operator finds none', async () => {
    for (const email of ['{"$ne":null}', '.*', '^', '%00', '$where']) {
      const path = `/api/projects/:projectId/users?email=${encodeURIComponent(email)}`;
      expect(JSON.parse((await send('an operator', 'GET', path)).text)).toMatchObject({
        data: { items: [], total: 0 },
      });
    }
  });
});

/** Ways by which a running pipeline names a field. */
const MADE_NAMES: readonly [way: string, stages: (value: unknown) => object[]][] = [
  ['$arrayToObject', (v) => [{ $project: { r: { $arrayToObject: [[{ k: NAME, v }]] } } }]],
  ['$arrayToObject of pairs', (v) => [{ $project: { r: { $arrayToObject: [[[NAME, v]]] } } }]],
  ['$replaceRoot', (v) => [{ $replaceRoot: { newRoot: { $arrayToObject: [[{ k: NAME, v }]] } } }]],
  ['$setField', (v) => [{ $project: { r: { $setField: { field: NAME, input: '$$ROOT', value: v } } } }]],
  ['$mergeObjects', (v) => [{ $project: { r: { $mergeObjects: [{ $arrayToObject: [[{ k: NAME, v }]] }] } } }]],
  ['$group by it', (v) => [{ $group: { _id: { $arrayToObject: [[{ k: NAME, v }]] } } }]],
  ['$bsonSize of it', (v) => [{ $project: { r: { $bsonSize: { $arrayToObject: [[{ k: NAME, v }]] } } } }]],
  ['$sort by it', (v) => [{ $set: { r: { $arrayToObject: [[{ k: NAME, v }]] } } }, { $sort: { r: 1 } }]],
  ['$unwind', () => [{ $set: { a: [1] } }, { $unwind: { path: '$a', includeArrayIndex: '_bsontype' } }]],
  ['$count', () => [{ $count: '_bsontype' }]],
  ['$lookup', () => [{ $lookup: { from: ':collection', pipeline: [], as: '_bsontype' } }]],
];
const NAME = { $concat: ['_bson', 'type'] };
const TYPES = ['ObjectId', 'Long', 'Decimal128', 'Binary', 'Code', 'DBRef', 'MinKey', 'RawDocument', 'x', 1, null, {}];

describe('a field that a pipeline names like the driver’s own types', () => {
  it.each(MADE_NAMES)('made by %s is refused whatever its value', async (_way, stages) => {
    const path = `/api/data/${estate.names.collection!}/aggregate`;
    for (const type of TYPES) {
      const pipeline = JSON.parse(
        JSON.stringify(stages(type)).replaceAll(':collection', estate.names.collection!),
      ) as [];
      const answer = await send('the secret key', 'POST', path, { pipeline });
      expect([type, outcomeOf(answer)]).toEqual([type, '400 INVALID_PIPELINE']);
    }
  });
});
