import { generateKeyPairSync } from 'node:crypto';
import { parse, stringify } from 'yaml';
import { afterAll, describe, expect, it } from 'vitest';
import { type JsonSchema, ROUTE_LISTS } from '../world/app.js';
import { FIELD_DEFS } from '../world/collections.js';
import {
  createProject,
  declareProject,
  requireProject,
  OVERRIDABLE_LIMITS,
  applyProjects,
  planProjects,
  readProjectsFile,
  type ProjectDeclaration,
  type ProjectPlan,
  withParsedCollections,
} from '../world/projects.js';
import { buildOperator } from '../helpers/operator-client.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

const NAME = 'all settings';
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const APPLE_KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

const CONSTRAINED = [
  { name: 'code', type: 'String', minLength: 2, maxLength: 9, pattern: '^[a-z]+$', trim: true, lowercase: true },
  { name: 'mail', type: 'String', format: 'email', nocase: true, hidden: true },
  { name: 'count', type: 'Number', min: 1, max: 9, integer: true, default: 3 },
  { name: 'state', type: 'String', enum: ['open', 'done'], required: true, read: 'anyone', write: 'user' },
  { name: 'tags', type: 'Array', items: { type: 'String' }, minItems: 1, maxItems: 3, uniqueItems: true },
  { name: 'of', type: 'Ref', ref: 'firsts', check: true, onDelete: 'restrict', same: ['count'] },
  { name: 'owner', type: 'Ref', ref: 'users', stamp: 'user.id', fixed: true },
  { name: 'in', type: 'Object', fields: [{ name: 'at', type: 'Date' }] },
  { name: 'number', type: 'Number', unique: true },
  { name: 'price', type: 'Number', hook: true },
];
const ABOUT_USERS = [
  { name: 'role', type: 'String', protected: true },
  { name: 'nick', type: 'String', public: true },
];

type Body = Record<string, unknown>;

/** Requests that give every setting of a project another value than it has at first, by route. */
const SETTINGS: Record<string, { at?: string; body: Body }[]> = {
  updateProject: [
    {
      body: {
        name: NAME,
        plan: 'pro',
        allowedDomains: ['https://shop.example'],
        limits: Object.fromEntries(OVERRIDABLE_LIMITS.map((limit, at) => [limit, at + 1000])),
        providerApiKey: 're_0123456789abcd',
        providerFromEmail: 'Shop <shop@shop.example>',
        providerWebhookSecret: `whsec_${'a'.repeat(24)}`,
        storage: { publishableUploads: true },
        signIn: {
          codeLogin: 'signup',
          redirects: ['https://shop.example/in'],
          mfa: 'optional',
          mfaResetDelay: '48h',
          passkeys: { rpId: 'shop.example', origins: ['https://shop.example'] },
          anonymous: true,
          anonymousKeep: '7d',
          tokens: 'ES256',
        },
      },
    },
  ],
  setBucket: [
    {
      at: '/bucket',
      body: {
        bucket: 'shop-files',
        endpoint: 'http://127.0.0.1:9',
        region: 'auto',
        accessKeyId: 'KEY',
        secretAccessKey: 'bucket/secret+1',
        publicUrl: 'https://files.shop.example',
        forcePathStyle: true,
        verify: false,
      },
    },
  ],
  setSocialProvider: [
    {
      at: '/social/acme',
      body: {
        issuer: 'http://localhost:9/tenant/',
        clientId: 'shop',
        clientSecret: 'acme secret',
        redirectUrls: ['https://shop.example/in', 'shop:/in'],
        scopes: ['openid', 'email'],
        appClientIds: ['shop.app'],
        tokenInAddress: true,
      },
    },
    {
      at: '/social/apple',
      body: {
        clientId: 'com.shop',
        clientSecret: APPLE_KEY,
        apple: { teamId: 'TEAM1', keyId: 'KEY1' },
        redirectUrls: ['https://shop.example/in'],
      },
    },
  ],
  setTemplate: [
    { at: '/mail/templates/welcome', body: { subject: 'Hello {{name}}', html: '<p>Hello</p>', text: 'Hello\n' } },
  ],
  addCollection: [
    { at: '/collections', body: { name: 'firsts', mode: 'flexible', access: 'private', ownerField: 'owner' } },
    {
      at: '/collections',
      body: {
        name: 'things',
        mode: 'enforced',
        fields: CONSTRAINED,
        rules: {
          read: 'anyone',
          create: 'user',
          update: 'doc.owner = user.id',
          delete: 'nobody',
          updateTo: 'doc.owner = user.id',
        },
        indexes: ['count'],
        uniques: [['code', 'count'], { fields: ['code'], where: { count: 3 } }],
        expire: { field: 'createdAt', after: '30d', permanent: true },
      },
    },
    { at: '/collections', body: { name: 'notes', mode: 'flexible', rls: { mode: 'public-read', ownerField: 'by' } } },
  ],
  editCollection: [
    {
      at: '/collections/users',
      body: { addFields: ABOUT_USERS, indexes: ['nick'], uniques: [['nick', 'role']] },
    },
    { at: '/collections/things', body: { expire: { field: 'createdAt', after: '30d', permanent: true } } },
  ],
  setRls: [{ at: '/collections/notes/rls', body: { enabled: true, mode: 'private', ownerField: 'by' } }],
  setRules: [
    {
      at: '/collections/firsts/rules?confirm=all%20settings',
      body: { rules: { read: 'user', create: 'user', update: 'user', delete: 'nobody', updateTo: 'user' } },
    },
  ],
  setChanges: [
    { at: '/collections/users/changes', body: { on: true, keepMs: 86_400_000 } },
    { at: '/collections/notes/changes', body: { on: false, keepMs: 3_600_000 } },
  ],
  addWebhook: [
    {
      at: '/webhooks',
      body: {
        url: 'http://127.0.0.1:9/hook?x=1',
        events: ['things.insert', '*.delete'],
        headers: { Authorization: 'Bearer receiver', 'X-Team': 'team of the warehouse' },
        description: 'to the "warehouse"',
        enabled: false,
      },
    },
    {
      at: '/webhooks',
      body: { url: 'http://127.0.0.1:9/other', events: ['*'], headers: { 'x-team': 'team of nobody' } },
    },
  ],
  addHook: [
    {
      at: '/hooks',
      body: { event: 'notes.create', url: 'http://127.0.0.1:9/ask', onFailure: 'allow', timeoutMs: 700 },
    },
    { at: '/hooks', body: { event: 'notes.update', run: 'notes.mjs#changed' } },
  ],
  addSchedule: [
    {
      at: '/schedules',
      body: {
        ...{ name: 'nightly', cron: '0 3 * * *', timeZone: 'Europe/Berlin', missed: 'skip' },
        url: 'http://127.0.0.1:9/nightly',
      },
    },
    { at: '/schedules', body: { name: 'hourly', cron: '0 * * * *', run: 'notes.mjs#hourly' } },
  ],
};

/** Properties of those requests that are no settings of the project. */
const NOT_KEPT: Record<string, string> = {
  'setBucket.verify': 'whether the bucket is tried first',
  'addCollection.ifNotExists': 'what is done with one that is there',
  'addCollection.rls.enabled': 'whether the rest of it counts',
  'addWebhook.strict': 'whether unknown collections are refused',
  'editCollection.forNewWrites': 'whether stored documents are looked at',
  'editCollection.fields': 'as addFields, for all',
  'editCollection.setFields': 'as addFields, for those that are there',
  'editCollection.dropFields': 'fields that go',
  'editCollection.mode': 'as addCollection',
  'editCollection.access': 'as addCollection',
  'editCollection.ownerField': 'as addCollection',
  'editCollection.rls': 'as setRls',
};

const isLeftOut = (path: string): boolean => Object.keys(NOT_KEPT).some((name) => `${path}.`.startsWith(`${name}.`));

/** Routes below a project that change what is no setting of it, or settings that another of them changes. */
const NO_SETTINGS = new Set([
  ...['renameCollection', 'applySchema', 'editWebhook'],
  // Secrets that the service makes itself.
  ...['createKey', 'rotateKey', 'rotateTokens', 'rotateWebhookSecret'],
  // Users, documents, files, mails and deliveries.
  ...[
    'createUserOfProject',
    'updateUserOfProject',
    'setUserPassword',
    'disableUserOfProject',
    'enableUserOfProject',
    'setRolesOfProject',
    'sendInviteOfProject',
  ],
  ...[
    'insertDocumentOfProject',
    'updateDocumentOfProject',
    'recoverDocumentOfProject',
    'trashDocuments',
    'recoverDocuments',
    'importDocuments',
  ],
  ...['createAudienceOfProject', 'createContactOfProject', 'updateContactOfProject', 'createBroadcastOfProject'],
  ...['sendBroadcastOfProject', 'readMailText', 'sendTestMail', 'uploadFileOfProject'],
  ...['replayDelivery', 'testWebhook', 'recountProject', 'checkBucket', 'setBucketCors'],
  ...['testHook', 'runSchedule'],
]);

afterAll(() => Promise.all([from.close(), to.close()]));

const ROUTES = ROUTE_LISTS.flatMap(({ routes }) => routes).filter(
  ({ method, path: line }) => line.startsWith('/api/projects/:projectId') && method !== 'GET' && method !== 'DELETE',
);

const settings = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_BCRYPT_COST: '4' };
const [from, to] = await Promise.all([openTestApp({ settings }), openTestApp({ settings })]);
const { call } = await buildOperator(from);
const { project } = await createProject(from.app, { name: 'first name' });
const path = `/api/projects/${project._id.toHexString()}`;
for (const [id, rows] of Object.entries(SETTINGS)) {
  const { method } = ROUTES.find((route) => route.id === id)!;
  for (const { at = '', body } of rows) {
    const answer = await call(method.toLowerCase() as 'put', path + at, body);
    if (answer.status >= 300) throw new Error(`${id}: ${JSON.stringify(answer.body)}`);
  }
}

describe('the settings of a project that its routes can set', () => {
  it('are in this table: every route that changes something, with every property of its body', () => {
    const writes = ROUTES.filter(({ access }) => access.action !== undefined).map(({ id }) => id);
    expect(writes.sort()).toEqual([...Object.keys(SETTINGS), ...NO_SETTINGS].sort());
    for (const [id, rows] of Object.entries(SETTINGS)) {
      const { body } = ROUTES.find((route) => route.id === id)!;
      const given = rows.flatMap((row) => listPaths(row.body));
      const absent = listProperties(body!).filter((name) => !given.includes(name) && !isLeftOut(`${id}.${name}`));
      expect([id, absent]).toEqual([id, []]);
    }
  });

  it('of a field are all there too', () => {
    const used = new Set([...CONSTRAINED, ...ABOUT_USERS].flatMap((field) => Object.keys(field)));
    expect(
      Object.keys((FIELD_DEFS.field as { properties: object }).properties).filter((key) => !used.has(key)),
    ).toEqual([]);
  });
});

describe('the file of a project with all settings', () => {
  it('holds no secret, and makes the same project of an empty server', async () => {
    const secrets = new Map<string, string>();
    const project = await requireProject(from.app, NAME);
    const file = stringify({ format: 'bsvc/1', projects: [await declareProject(from.app, project, secrets)] });
    expect([...secrets.values()]).toEqual(
      expect.arrayContaining(['re_0123456789abcd', 'bucket/secret+1', 'acme secret', APPLE_KEY, 'Bearer receiver']),
    );
    for (const secret of secrets.values()) expect(file).not.toContain(secret);
    expect(new Set(secrets.keys()).size).toBe(secrets.size);

    await apply(to, file, secrets);
    const copied = new Map<string, string>();
    const copy = await declareProject(to.app, await requireProject(to.app, NAME), copied);
    expect(stringify({ format: 'bsvc/1', projects: [copy] })).toBe(file);
    expect(copied).toEqual(secrets);
    const other = await buildOperator(to);
    const there = `/api/projects/${(await requireProject(to.app, NAME))._id.toHexString()}`;
    for (const at of ['', '/bucket', '/social', '/webhooks', '/mail/templates', '/collections']) {
      const [one, two] = await Promise.all([call('get', path + at), other.call('get', there + at)]);
      expect(asSettings(two.body)).toEqual(asSettings(one.body));
    }
  });

  it('changes nothing where it is applied again, on either server', async () => {
    const secrets = new Map<string, string>();
    const declared = await declareProject(from.app, await requireProject(from.app, NAME), secrets);
    for (const test of [from, to]) {
      for (const prune of [false, true]) {
        const [plan] = await planProjects(test.app, [declared], { prune, secretOf: (name) => secrets.get(name) });
        expect(changesOf(plan!)).toEqual([]);
      }
    }
  });

  it('tells which of its secrets changed, never their values', async () => {
    const secrets = new Map<string, string>();
    const declared = await declareProject(from.app, await requireProject(from.app, NAME), secrets);
    const secretOf = (name: string): string =>
      ({
        ALL_SETTINGS_APPLE_CLIENT_SECRET: APPLE_KEY,
        ALL_SETTINGS_MAIL_PROVIDER_KEY: 're_other',
        ALL_SETTINGS_MAIL_WEBHOOK_SECRET: `whsec_${'b'.repeat(24)}`,
      })[name] ?? 'another';
    const [plan] = await planProjects(from.app, [declared], { prune: false, secretOf });
    expect(changesOf(plan!)).toEqual([
      'key of the mail provider: set -> another one',
      'secret of the mail provider’s events: set -> another one',
      'secret access key of the bucket: another one',
      'client secret: another one',
      'header Authorization: another value',
      'header X-Team: another value',
      'header x-team: another value',
    ]);
  });

  it('is refused with the names of all secrets that are not set', async () => {
    const declared = await declareProject(from.app, await requireProject(from.app, NAME));
    const plan = planProjects(to.app, [declared], {
      prune: false,
      secretOf: (name) => (/APPLE/.test(name) ? 'x' : ''),
    });
    await expect(plan).rejects.toMatchObject({
      code: 'SECRET_MISSING',
      message:
        'The environment variables ALL_SETTINGS_ACME_CLIENT_SECRET, ALL_SETTINGS_MAIL_PROVIDER_KEY, ALL_SETTINGS_MAIL_WEBHOOK_SECRET, ALL_SETTINGS_BUCKET_SECRET_ACCESS_KEY, ALL_SETTINGS_127_0_0_1_AUTHORIZATION, ALL_SETTINGS_127_0_0_1_X_TEAM, ALL_SETTINGS_127_0_0_1_X_TEAM_2 are not set: set them or write them into .env',
    });
  });
});

async function apply(test: TestApp, file: string, secrets: ReadonlyMap<string, string>): Promise<void> {
  const { projects } = readProjectsFile(withParsedCollections(parse(file))) as { projects: ProjectDeclaration[] };
  const plans = await planProjects(test.app, projects, { prune: false, secretOf: (name) => secrets.get(name) });
  await applyProjects(test.app, plans, { stop: new AbortController().signal, onCreated: () => undefined });
}

function changesOf({ what, collections, items }: ProjectPlan): string[] {
  const parts: { action: string; what?: string[] }[] = [...items, ...collections];
  return [...what, ...parts.flatMap((change) => change.what ?? [change.action])];
}

/** Paths of the properties of a body, those of objects with named properties among them. */
function listProperties(schema: JsonSchema, prefix = ''): string[] {
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).flatMap(([name, inner]) => {
    const own = (inner.anyOf as JsonSchema[] | undefined)?.find(({ properties }) => properties) ?? inner;
    return own.properties ? listProperties(own, `${prefix}${name}.`) : [prefix + name];
  });
}

function listPaths(value: unknown, prefix = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => [prefix + name, ...listPaths(inner, `${prefix}${name}.`)]);
}

/** Without what every server makes itself. */
function asSettings(body: unknown): unknown {
  const own = new Set(['id', 'createdAt', 'updatedAt', 'setAt', 'version']);
  return JSON.parse(JSON.stringify(body), (name, value: unknown) => (own.has(name) ? undefined : value)) as unknown;
}
