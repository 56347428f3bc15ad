import { createHash } from 'node:crypto';
import { ObjectId } from 'bson';
import { afterAll, expect, it } from 'vitest';
import { JSON_TYPE, type JsonSchema, ROUTE_LISTS, type Route } from '../../../world/app.js';
import { changeProject, setSocialProvider } from '../../../world/projects.js';
import { COUNTERS, SESSIONS } from '../../../world/stored.js';
import { totpCode } from '../../../world/users.js';
import { openOidcIssuer } from '../../../helpers/oidc-issuer.js';
import { openRandom } from '../../../helpers/random.js';
import { openSeed } from '../../../helpers/seed.js';
import { openAuthenticator, type SoftAuthenticator } from '../../../helpers/soft-authenticator.js';
import { use } from '../../../helpers/use.js';
import { bearer, buildEmail, openUserClient, PASSWORD } from '../../../helpers/user-client.js';
import { spoil, spoilToken } from '../hostile-credentials.js';
import { HOSTILE_JSON } from '../hostile-values.js';
import { fill, patternOf, ROUTE_TABLE } from '../routes-table.js';
import { buildEstate, fire, openStage, outcomeOf, passFor, readEverything } from '../stage.js';

// Every route of accounts that reads a body, by the tables of routes themselves, in a project with every way in: what
// has not its form is 400, what makes no sense is refused, both by a code that the API's document names there (the
// stage compares), and neither changes anything.

const FORM_TYPE = 'application/x-www-form-urlencoded';
const SITE = { rpId: 'shop.example', origin: 'https://app.shop.example' };
const HOME = 'https://app.shop.example/in';
const LONG_AGO = new Date(Date.now() - 11 * 60_000);

/** Of the hostile values, for each field another part. */
const PART = 0.15;
const seed = openSeed('hostile bodies of accounts');
const random = openRandom(seed);

/** Routes where a body of the right form may succeed whatever it says, as nothing in it is secret. */
const OPEN: ReadonlySet<string> = new Set([
  ...['signUp', 'signUpAnonymous', 'sendLoginCode', 'requestPasswordReset', 'resendVerification', 'updateProfile'],
  ...[
    'putProfile',
    'sendInvite',
    'createUser',
    'updateUser',
    'setRoles',
    'createUserOfProject',
    'updateUserOfProject',
    'setRolesOfProject',
  ],
  ...['setUserPassword', 'sendInviteOfProject', 'setSocialProvider'],
]);

const ROUTES = ROUTE_LISTS.filter(({ tag }) => ['Users', 'Project users'].includes(tag)).flatMap(({ routes }) =>
  routes.filter(({ body, openBody, ownBody }) => (body ?? openBody ?? ownBody) !== undefined),
);

const device = openAuthenticator(SITE.rpId, SITE.origin);

interface Account {
  id: string;
  email: string;
  token: string;
}
type Challenge = { challenge: string };

/** Signed in, with a proven address. */
async function buildAccount(): Promise<Account> {
  const email = buildEmail();
  await openUserClient(stage, estate.secret).post('/users', { email, password: PASSWORD, emailVerified: true });
  const { body } = (await client.logIn(email)) as { body: { accessToken: string; user: { _id: string } } };
  return { id: body.user._id, email, token: body.accessToken };
}

const bodyOf = async <T>(sent: PromiseLike<{ body: unknown }>): Promise<T> => (await sent).body as T;
const signing = (): Promise<Challenge> => bodyOf(client.post('/login/passkey/options'));
const registering = ({ token }: Account): Promise<Challenge> =>
  bodyOf(client.post('/passkeys/options', { currentPassword: PASSWORD }, bearer(token)));

const stage = use(await openStage({ BSVC_ANONYMOUS_RATE_LIMIT: 'off' }));
const estate = await buildEstate(stage);
const issuer = use(await openOidcIssuer(`${stage.url}/api/userAuth/social/acme/callback`));
const passkeys = { rpId: SITE.rpId, origins: [SITE.origin] };
const signIn = { codeLogin: 'signup', mfa: 'optional', anonymous: true, redirects: [HOME], passkeys } as const;
estate.project = await changeProject(stage.app, estate.project, { signIn: { ...signIn, redirects: [HOME] } });
await setSocialProvider(stage.app, estate.project, {
  ...{ name: 'acme', issuer: issuer.url, clientId: issuer.clientId, clientSecret: issuer.clientSecret },
  ...{ appClientIds: [issuer.appClientId], redirectUrls: [HOME], mayBePrivate: true },
});
const client = openUserClient(stage, estate.publishable);
const nonce = 'kept by the app';
issuer.person = { sub: 'ada', email: 'ada@issuer.example', emailVerified: true };
const idToken = { idToken: await issuer.idToken(createHash('sha256').update(nonce).digest('hex')), nonce };
const factored = await buildAccount();
const { data } = await bodyOf<{ data: { secret: string } }>(client.post('/mfa/totp', {}, bearer(factored.token)));
await client.post('/mfa/totp/confirm', { code: totpCode(data.secret, Date.now()) }, bearer(factored.token));
/** Who has begun to enrol an app a moment ago: nothing stands before what the body says. */
const enrolling = await buildAccount();
await client.post('/mfa/totp', {}, bearer(enrolling.token));
const owner = await buildAccount();
await client.post('/passkeys', { response: device.create(await registering(owner)) }, bearer(owner.token));
// Whose last proof is older than ten minutes: no change of a way in goes without another.
const user = await buildAccount();
const sessions = stage.app.db.collection<{ userId: ObjectId; authAt?: Date }>(SESSIONS);
await sessions.updateOne({ userId: new ObjectId(user.id) }, { $set: { authAt: LONG_AGO } });
estate.user = { ...estate.user, accessToken: user.token };
const names = { provider: 'acme', session: 'others', email: 'ada@example.test', password: 'a guess' };
Object.assign(estate.names, { passkey: 'AA', invite: 'AA', ...names });
afterAll(async () => {
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

/** A body as text, and whether it has the form that the route's schema asks for. */
interface Shot {
  text: string;
  hasForm: boolean;
  type?: string;
}

const NO_JSON = ['', ' ', '{', '{"a":1}{"b":2}', '\u0000', 'NaN', "{'a':1}", '{"a":"\n"}'];
const NO_OBJECTS = ['null', '7', '"text"', 'true', '[]', '[{}]', `${'['.repeat(5_000)}`, `[${'{},'.repeat(60_000)}{}]`];
const EXTRA = [
  '"$where":"1"',
  '"a.b":1',
  '"__proto__":{"polluted":true}',
  '"constructor":{"prototype":{"polluted":1}}',
];
const FORMS = [
  '',
  'state',
  'state=a&state=b',
  'state[]=a',
  'state=%',
  'state=%00',
  'state=a&code[$gt]=',
  '{"state":"a"}',
];

/** Everything of a form that a body may have: for what no table below says more, the route's own example. */
const RIGHT: Readonly<Record<string, () => Promise<object>[]>> = {
  logInWithFactor: () => [
    half().then((mfaToken) => ({ mfaToken, totp: '000000' })),
    half().then((mfaToken) => ({ mfaToken, recoveryCode: 'aaaaa-aaaaa' })),
  ],
  logInByIdToken: () => [Promise.resolve({ ...idToken, nonce: 'of another app' })],
};

/** A sign-in that lacks its second factor. */
async function half(): Promise<string> {
  const { data } = await bodyOf<{ data: { mfaToken: string } }>(client.logIn(factored.email));
  return data.mfaToken;
}

async function* shotsAt(route: Route, example: object): AsyncGenerator<Shot> {
  const { id, body, openBody, ownBody, bodyIsOptional = false } = route;
  if (ownBody && !(JSON_TYPE in ownBody.content)) {
    for (const text of FORMS) yield { text, hasForm: false, type: FORM_TYPE };
    return;
  }
  const schema = (body ?? openBody)!;
  const fields = (schema.properties ?? {}) as Record<string, JsonSchema | false>;
  const required = new Set((schema.required ?? []) as string[]);
  for (const text of NO_JSON) yield { text, hasForm: text === '' && bodyIsOptional };
  for (const text of NO_OBJECTS) yield { text, hasForm: false };
  for (const make of RIGHT[id]?.() ?? [Promise.resolve(example)]) {
    const right = await make;
    const text = JSON.stringify(right);
    for (const name of required) yield { text: JSON.stringify({ ...right, [name]: undefined }), hasForm: false };
    for (const extra of EXTRA) yield { text: `{${extra}${text === '{}' ? '' : ','}${text.slice(1)}`, hasForm: true };
    for (const [name, field] of Object.entries(fields)) {
      for (const value of HOSTILE_JSON) {
        if (!random.chance(PART)) continue;
        const isKnown = field !== false && (body !== undefined || value !== 'null');
        const hasForm = field !== false && (!isKnown || admits(field, JSON.parse(value)));
        yield { text: withField(right, name, value), hasForm };
      }
    }
  }
  for (const [name, value] of await credentialsFor(route, fields)) {
    yield { text: JSON.stringify({ ...(await credentialBase(id, example)), [name]: value }), hasForm: true };
  }
}

const credentialBase = async (id: string, example: object): Promise<object> =>
  id === 'logInWithFactor' ? { mfaToken: await half() } : id === 'logInByIdToken' ? idToken : example;

/** Answers of authenticators and id tokens that were right before something of them was changed. */
async function credentialsFor({ id }: Route, fields: object): Promise<[string, unknown][]> {
  const each = async (make: () => Promise<object>): Promise<object[]> => {
    const spoiled: object[] = [];
    const count = spoil(await make()).length;
    // Each has a challenge of its own, which the one before has used up.
    // All read them by the same check.
    const part = ['logInByPasskey', 'registerPasskey'].includes(id) ? 1 : 0.1;
    for (let at = 0; at < count; at++) if (random.chance(part)) spoiled.push(spoil(await make())[at]!);
    return spoiled;
  };
  if ('idToken' in fields) return spoilToken(idToken.idToken).map((token) => ['idToken', token]);
  if (id === 'registerPasskey') {
    const other: SoftAuthenticator = openAuthenticator(SITE.rpId, SITE.origin);
    return (await each(async () => other.create(await registering(user)))).map((value) => ['response', value]);
  }
  const name = ['response', 'passkey'].find((field) => field in fields);
  if (name === undefined) return [];
  return (await each(async () => device.get(await signing()))).map((value) => [name, value]);
}

const withField = (right: object, name: string, json: string): string =>
  JSON.stringify({ ...right, [name]: '@hostile@' }).replace('"@hostile@"', () => json);

/** False where the value is surely none that the schema admits. */
function admits(schema: JsonSchema, value: unknown): boolean {
  if (schema.anyOf) return (schema.anyOf as JsonSchema[]).some((each) => admits(each, value));
  if (schema.enum) return (schema.enum as unknown[]).includes(value);
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  if (schema.type !== undefined && ![schema.type].flat().includes(kind)) return false;
  if (typeof value !== 'string') return true;
  const { maxLength = Infinity, minLength = 0, pattern = '', wellFormed } = schema;
  return (
    value.length <= (maxLength as number) &&
    value.length >= (minLength as number) &&
    new RegExp(pattern as string, 'u').test(value) &&
    !(wellFormed === true && /\p{Surrogate}/u.test(value))
  );
}

/** The records of the store, without those that count guesses and hold half-done sign-ins. */
async function digest(): Promise<ReadonlySet<string>> {
  await stage.app.backgroundTasks.idle();
  const lines = (await readEverything(stage, estate)).split('\n');
  const kept = lines.filter((line) => !/^(counters|one_time_tokens) /.test(line));
  return new Set(kept.map((line) => line.replaceAll(/,"(tries|dayTries)":\d+/g, '')));
}

const changesTo = (before: ReadonlySet<string>, after: ReadonlySet<string>): string[] =>
  [...before, ...after].filter((line) => !before.has(line) || !after.has(line)).map((line) => line.slice(0, 300));

async function send(route: Route, { text, type = JSON_TYPE }: Shot): Promise<string> {
  const row = ROUTE_TABLE.find((each) => patternOf(each) === patternOf(route))!;
  const answer = await fire(stage, {
    method: route.method,
    path: fill(row.path, estate.names),
    headers: {
      ...passFor(row.pass, estate),
      ...(route.id === 'confirmTotp' && bearer(enrolling.token)),
      'content-type': type,
    },
    body: text,
  });
  // The bounds of guesses are met elsewhere.
  if (answer.status === 401) await stage.app.db.collection(COUNTERS).deleteMany({});
  return outcomeOf(answer);
}

const seen: Record<string, number> = {};
/** Sent last, as they may change what others rest on. */
const harmless: [Route, Shot][] = [];

it.each(ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
  'refuses every hostile body and changes nothing: %s',
  async (_title, route) => {
    const example = JSON.parse(JSON.stringify(route.example ?? {}).replaceAll(PASSWORD, 'a guess')) as object;
    const faults: string[] = [];
    const before = await digest();
    for await (const shot of shotsAt(route, example)) {
      if (shot.hasForm && OPEN.has(route.id)) {
        harmless.push([route, shot]);
        continue;
      }
      const outcome = await send(route, shot);
      seen[outcome] = (seen[outcome] ?? 0) + 1;
      const isRefused = shot.hasForm ? /^4\d\d [A-Z_]+$/ : /^4(00|13) [A-Z_]+$/;
      if (!isRefused.test(outcome)) faults.push(`${outcome}: ${shot.text.slice(0, 300)}`);
    }
    expect(faults).toEqual([]);
    expect(changesTo(before, await digest())).toEqual([]);
  },
);

it('would have let in what it was made of', async () => {
  const answers = [
    await client.post('/login/passkey', { response: device.get(await signing()) }),
    await client.post('/social/acme/id-token', idToken),
    await client.post(
      '/passkeys',
      { response: openAuthenticator(SITE.rpId, SITE.origin).create(await registering(user)) },
      bearer(user.token),
    ),
  ];
  expect(answers.map(({ status, body }) => `${status} ${(body as { code?: string }).code ?? ''}`)).toEqual([
    '200 ',
    '200 ',
    '201 ',
  ]);
});

it('answers by the contract what has the form of a body that needs no secret', async () => {
  const faults: string[] = [];
  for (const [route, shot] of harmless) {
    const outcome = await send(route, shot);
    seen[outcome] = (seen[outcome] ?? 0) + 1;
    if (!/^(20[01]|4\d\d [A-Z_]+)$/.test(outcome)) faults.push(`${route.id} ${outcome}: ${shot.text.slice(0, 300)}`);
  }
  console.log(`hostile bodies of accounts, seed ${seed}: ${JSON.stringify(seen)}`);
  expect(faults).toEqual([]);
});
