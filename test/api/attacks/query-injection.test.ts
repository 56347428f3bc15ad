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
const QUERIES: Record<`${string} ${string}, as ${Pass}`, Record<string, string>> = {
  'GET /api/mail/logs, as the secret key': {
    'page[$gt]=0': '200',
    'page=1&page=2': '400 INVALID_QUERY',
    'limit=-1': '400 INVALID_QUERY',
    'limit=1e9': '400 INVALID_QUERY',
    'limit=NaN': '400 INVALID_QUERY',
    'page=999999': '200',
    'projectId=:projectId&filter={"$ne":1}': '200',
  },
  'GET /api/projects/:projectId/users, as an operator': {
    'email[$ne]=': '200',
    'email={"$ne":null}': '200',
    'email=%00': '200',
    'email=a&email=b': '400 INVALID_QUERY',
    'email=.*': '200',
    'limit=0': '400 INVALID_QUERY',
    'page=-0': '400 INVALID_QUERY',
    'page=1e400': '400 INVALID_QUERY',
  },
  'GET /api/projects/:projectId/webhooks/:webhook/deliveries, as an operator': {
    'state[$ne]=x': '200',
    'state={"$ne":"x"}': '400 INVALID_QUERY',
    'before={"$ne":"x"}': '400 INVALID_QUERY',
    'before=a&before=b': '400 INVALID_QUERY',
    'limit=Infinity': '400 INVALID_QUERY',
    'limit=0x10': '400 INVALID_QUERY',
    'limit=': '400 INVALID_QUERY',
  },
  'GET /api/admin/audit, as an operator of all projects': {
    'action[$ne]=x': '200',
    'action=a&action=b': '400 INVALID_QUERY',
    'since=99999999999999999999d': '200',
    'since=9999999999d': '200',
    'since=NaN': '400 INVALID_QUERY',
  },
  'PATCH /api/projects/:projectId, as an owner': {
    'verify[$ne]=1': '400 VALIDATION_FAILED',
  },
  'PATCH /api/projects/:projectId/collections/:collection, as an owner': {
    'check=1': '400 INVALID_QUERY',
  },
  'POST /api/data/:collectionName/aggregate, as a key': {
    'include_deleted[$ne]=x': '400 INVALID_PIPELINE',
  },
  'DELETE /api/data/:collectionName/:document, as the secret key to write': {
    'permanent=1': '400 INVALID_QUERY',
    'permanent=true&permanent=true': '400 INVALID_QUERY',
  },
  'GET /api/data/:collectionName/:document, as a key': {
    'include_deleted[$ne]=x': '400 INVALID_QUERY',
    '__proto__=x': '400 INVALID_QUERY',
    'fields=$where': '400 INVALID_QUERY',
    'fields=_bsvc': '400 INVALID_QUERY',
  },
  'GET /api/userAuth/social/:provider/callback, as everybody': {
    'state[$ne]=x': '400 SOCIAL_STATE_INVALID',
    'state=%00&code={"$ne":1}': '400 SOCIAL_STATE_INVALID',
    [`state=${'a'.repeat(9000)}`]: '400 SOCIAL_STATE_INVALID',
  },
  'GET /api/userAuth/social/:provider/start, as everybody': {
    'key[$ne]=x': '401 API_KEY_MISSING',
    'key=a&key=b': '401 API_KEY_MISSING',
    'key=:key&redirect[$ne]=x': '302',
    'key=:key&redirect=https://evil.test/': '400 REDIRECT_NOT_ALLOWED',
    'key=:key&redirect=https://app.example.test/.evil.test': '400 REDIRECT_NOT_ALLOWED',
    'key=:key&redirect=https://app.example.test%2f': '302',
    'key=:key&redirect=//evil.test': '400 REDIRECT_NOT_ALLOWED',
    'key=:key&redirect=javascript:alert(1)': '400 REDIRECT_NOT_ALLOWED',
    'key=:key&redirect=%0d%0aset-cookie:a=b': '400 REDIRECT_NOT_ALLOWED',
  },
  'POST /api/mail/webhook, as everybody': {
    'project[$ne]=x': '400 INVALID_SIGNATURE',
    'project=%00': '200',
  },
};

describe('a query string', () => {
  const rows = Object.entries(QUERIES).flatMap(([at, answers]) =>
    Object.entries(answers).map(([query, outcome]) => [at, query, outcome] as const),
  );
  it.each(rows)('%s, with ?%s: %s', async (at, query, outcome) => {
    const [, method, path, pass] = /^(\w+) (\S+), as (.*)$/.exec(at) as unknown as [string, string, string, Pass];
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
