import { randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { BSON, EJSON } from 'bson';
import { expect, it } from 'vitest';
import { type JsonSchema, ROUTE_LISTS, type Route } from '../../../world/app.js';
import { drainJobs } from '../../../world/jobs.js';
import { backUp } from '../../../world/operators.js';
import { createKey, declareProject, requireProject, updateProject } from '../../../world/projects.js';
import { buildOperator } from '../../../helpers/operator-client.js';
import { use } from '../../../helpers/use.js';
import { openUserClient } from '../../../helpers/user-client.js';
import { fill, patternOf, ROUTE_TABLE, type RouteRow } from '../routes-table.js';
import { ADMIN_TOKEN, buildEstate, EVENT_SECRET, fire, openStage, passFor } from '../stage.js';

// A secret in every field of every route's body that may hold one, in headers and queries of every route, and those
// that the service makes itself: afterwards none of them is read anywhere. A field of a new route stands in one of the
// two tables below, or the first test fails.

const word = (): string => `planted${randomBytes(20).toString('hex')}`;
const digits = (): string => String(randomInt(100_000, 1_000_000));
const assertion = (): object => ({
  ...{ id: word(), rawId: word(), type: 'public-key' },
  response: { clientDataJSON: word(), authenticatorData: word(), signature: word() },
});

/** A value for each field that holds a secret, or an address that may hold one. */
const SECRETS: Readonly<Record<string, () => unknown>> = {
  password: word,
  newPassword: word,
  currentPassword: word,
  totp: digits,
  otp: digits,
  code: digits,
  recoveryCode: word,
  passkey: assertion,
  response: assertion,
  mfaToken: word,
  token: word,
  mergeToken: word,
  link: word,
  idToken: () => `${word()}.${word()}.${word()}`,
  nonce: word,
  state: word,
  rtCode: word,
  code_verifier: word,
  providerApiKey: () => `re_${word()}`,
  providerWebhookSecret: () => `whsec_${Buffer.from(word()).toString('base64')}`,
  clientSecret: word,
  secretAccessKey: word,
  headers: () => ({ Authorization: `Bearer ${word()}` }),
  url: () => `http://127.0.0.1:9/${word()}?key=${word()}`,
};
/** Addresses that are shown: one with a password in it is refused, or shown without. */
const ADDRESSES = new Set(['endpoint', 'publicUrl', 'issuer', 'redirect', 'origin']);
const PLAIN = new Set(
  `accessKeyId address after at cron event key run timeZone rls rules appClientIds audienceId bucket clientId code_challenge collection contentType create
  data delete description dropFields email events field fields filePath filename filter firstName format from grace html id
  ids ifMatch indexes inviterName keep keyId lastName mfaResetDelay anonymousKeep name op origins ownerField path paths
  allowedDomains pipeline projectId projects providerFromEmail query rawId read redirectUrls redirects region replyTo
  roles rpId scheduledAt scopes segmentId since sort subject teamId templateId templateName text to type uniques update
  updateTo username variables`.split(/\s+/),
);

interface Planted {
  what: string;
  value: string;
}
const planted: Planted[] = [];

const holds = (text: string, value: string): boolean =>
  /^\d{6}$/.test(value) ? new RegExp(`(?<![\\w.-])${value}(?![\\w.-])`).test(text) : text.includes(value);
const foundIn = (text: string): string[] => planted.filter(({ value }) => holds(text, value)).map(({ what }) => what);

function note(what: string, value: unknown): void {
  if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) note(what, each);
  } else if (value !== 'public-key') {
    // Of an address each part counts, of a text what is random in it.
    for (const part of String(value).match(/planted[0-9a-f]{40}/g) ?? [String(value)])
      planted.push({ what, value: part });
  }
}

type Schema = JsonSchema | boolean | undefined;
/** Fields that may be text, with those below them; not the ones of documents, which belong to users. */
function fieldsOf(schema: Schema, found = new Map<string, JsonSchema>()): Map<string, JsonSchema> {
  if (typeof schema !== 'object') return found;
  for (const [name, field] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema | false>)) {
    if (typeof field !== 'object') continue;
    const kinds = [field, ...((field.anyOf ?? []) as JsonSchema[])].flatMap(({ type, enum: some }) =>
      some ? ['enum'] : [type].flat(),
    );
    const isText = kinds.includes('string');
    if (isText || Object.hasOwn(SECRETS, name)) found.set(name, field);
    if (!Object.hasOwn(SECRETS, name)) fieldsOf(field, found);
  }
  for (const each of ['anyOf', 'oneOf', 'allOf'].flatMap((key) => (schema[key] ?? []) as Schema[]))
    fieldsOf(each, found);
  return fieldsOf(schema.items as Schema, found);
}

const ROUTES = ROUTE_LISTS.flatMap(({ routes }) => routes);
const rowOf = (route: Route): RouteRow => ROUTE_TABLE.find((row) => patternOf(row) === patternOf(route))!;
const fieldsOfBody = ({ body, openBody }: Route): [string, JsonSchema][] => [...fieldsOf(body ?? openBody)];
const TAKING = ROUTES.filter((route) => fieldsOfBody(route).some(([name]) => Object.hasOwn(SECRETS, name)));

/** What was answered to a request that set secrets. */
const outcomes: Record<string, number> = {};

const stage = use(await openStage({ BSVC_LOG_LEVEL: 'trace', BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: 'off' }));
const estate = await buildEstate(stage);
const signIn = { codeLogin: 'existing', mfa: 'optional', redirects: ['https://shop.example/join'] } as const;
estate.project = await updateProject(stage.app, estate.project._id.toHexString(), {
  signIn: { ...signIn, redirects: [...signIn.redirects] },
});
const { id } = await buildOperator(stage, 'owner', [estate.project]);
Object.assign(estate.names, { operator: id, invite: 'none', passkey: 'none', view: 'none' });
for (const [what, value] of [
  ['admin token', ADMIN_TOKEN],
  ['secret of mail events', EVENT_SECRET],
  ['secret key', estate.secret],
  ['signing secret', estate.names.webhookSecret],
  ['access token', estate.user.accessToken],
  ['refresh token', estate.user.refreshToken],
  ['operator token', estate.operator],
]) {
  note(what!, value);
}

/** Values that the service makes: each is shown by the answer that makes it, and by no other. */
const MADE = /^(value|secret|accessToken|refreshToken|mfaToken|recoveryCodes|ticket|link|mergeToken|token|uri)$/;

function noteMade(what: string, body: unknown, name = ''): void {
  if (typeof body === 'object' && body !== null) {
    for (const [key, value] of Object.entries(body)) noteMade(what, value, Array.isArray(body) ? name : key);
  } else if (typeof body === 'string' && MADE.test(name) && body.length > 8 && !body.startsWith('pk_live_')) {
    note(`${what} ${name}`, body);
  }
}

async function send(route: Route, body: unknown, headers: Record<string, string> = {}, query = ''): Promise<number> {
  const row = rowOf(route);
  const path = fill(row.path, estate.names);
  const answer = await fire(stage, {
    method: route.method,
    path: query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`,
    headers: { ...passFor(row.pass, estate), ...fill(row.headers ?? {}, estate.names), ...headers },
    ...(route.method !== 'GET' && { body }),
  });
  const before = new Set(planted.map(({ value }) => value));
  if (route.method !== 'GET') {
    if (answer.headers['content-type']?.toString().startsWith('application/json'))
      noteMade(route.id, JSON.parse(answer.text));
    for (const [, value] of String(answer.headers['set-cookie'] ?? '').matchAll(/=([\w.-]{20,})/g))
      note(`${route.id} cookie`, value);
    if (answer.headers['x-refresh-token']) note(`${route.id} refresh token`, answer.headers['x-refresh-token']);
  }
  // An answer tells what it makes, and nothing that was sent.
  const told = [...before].filter((value) => holds(answer.text, value));
  if (told.length > 0 && !showsAddress(route))
    outcomes[`${route.id} ${answer.status}: ${answer.text.slice(0, 300)}`] = told.length;
  return answer.status;
}

/** Who looks after a webhook, a hook or a call at a time sees its address. */
const showsAddress = ({ id }: Pick<Route, 'id'>): boolean => /hook|schedule|call/i.test(id);

/** The example of the route with secrets in those of its fields that set them, or in all fields. */
function bodyWith(route: Route, all: boolean): object {
  const base = (rowOf(route).body ?? route.example ?? {}) as Record<string, unknown>;
  const body: Record<string, unknown> = { ...fill(base, estate.names) };
  if (typeof base.email === 'string' && !base.email.startsWith(':')) body.email = `new${planted.length}@example.test`;
  // There is one of each.
  if (route.id === 'addHook') body.event = `a${planted.length}.create`;
  if (route.id === 'addSchedule') body.name = `a${planted.length}`;
  for (const [name] of fieldsOfBody(route)) {
    const isProof = typeof base[name] === 'string' && base[name].startsWith(':');
    const value = ADDRESSES.has(name) ? `https://me:${word()}@shop.example/` : SECRETS[name]?.();
    if (value === undefined || (!all && (ADDRESSES.has(name) || isProof || !(name in base || SETS.test(name)))))
      continue;
    body[name] = value;
    note(`${route.id} ${name}`, value);
  }
  return body;
}
const SETS = /^(provider\w+|newPassword|clientSecret|secretAccessKey|headers)$/;

it('is known of every field of a body whether it is a secret', () => {
  const unknown = ROUTES.flatMap((route) =>
    fieldsOfBody(route)
      .filter(([name]) => !Object.hasOwn(SECRETS, name) && !ADDRESSES.has(name) && !PLAIN.has(name))
      .map(([name]) => `${route.id} ${name}`),
  );
  expect(unknown).toEqual([]);
  expect(TAKING.length).toBeGreaterThan(25);
});

it('are taken by every route that takes one, and refused, without being said again', async () => {
  const ends = ({ method, id }: Route): boolean => method === 'DELETE' || /logout|deleteMe/i.test(id);
  const statuses: string[] = [];
  for (const route of TAKING) {
    const all = bodyWith(route, true);
    await send(route, JSON.stringify(all).slice(0, -1));
    await send(route, all);
    if (ends(route)) continue;
    const body = bodyWith(route, false) as { newPassword?: string };
    const status = await send(route, body);
    if (status < 300 && body.newPassword !== undefined) estate.names.password = body.newPassword;
    if (rowOf(route).allowed.startsWith('2') && status >= 300) statuses.push(`${route.id} ${status}`);
  }
  // What makes secrets without taking any.
  for (const route of ROUTES.filter((each) => /rotate|Ticket|createKey|sendInvite|begin/i.test(each.id))) {
    const email = `invited${planted.length}@example.test`;
    const base = (rowOf(route).body ?? route.example ?? {}) as object;
    const body = /Invite/.test(route.id) ? { email, redirect: 'https://shop.example/join' } : fill(base, estate.names);
    await send(route, body);
    if (/rotateKey/.test(route.id)) estate.secret = (await createKey(stage.app, estate.project, 'secret')).value;
  }
  note('secret key', estate.secret);
  for (const route of ROUTES) {
    const value = word();
    note(`${route.id} credentials`, value);
    const headers = {
      ...{ authorization: `Bearer ${value}`, cookie: `bsvc=${value}; bsvc_console=${value}` },
      ...{ 'x-api-key': `sk_live_${value}`, 'x-refresh-token': value, 'svix-signature': `v1,${value}` },
    };
    await send(
      route,
      '{}',
      headers,
      ['key', 'token', 'ticket', 'state', 'code', 'mark'].map((name) => `${name}=${value}`).join('&'),
    );
  }
  const { email } = estate.names;
  const user = openUserClient(stage, estate.publishable);
  await user.post('/request-password-reset', { email });
  await user.post('/login/code', { email });
  await stage.app.backgroundTasks.idle();
  await drainJobs(stage.app);
  for (const { text = '' } of stage.provider.accepted) {
    for (const [secret] of text.matchAll(/\b\d{6}\b|(?<=#invite=)[\w-]+/g)) note('mailed code', secret);
  }
  expect(statuses).toEqual([]);
  expect(outcomes).toEqual({});
});

it('are in no log line, record, backup or export', async () => {
  const log = stage.logLines.join('');
  expect(log).toContain('"path":"/api/userAuth/change-password"');
  expect(foundIn(log)).toEqual([]);
  const records: string[] = [];
  for (const name of await stage.app.db.listNames()) {
    for await (const record of stage.app.db.collection(name).find({})) records.push(EJSON.stringify(record));
  }
  expect(foundIn(records.join('\n'))).toEqual([]);
  const path = join(stage.dataDir, 'planted.backup');
  await backUp(stage.app, path, { stop: new AbortController().signal, onProgress: () => undefined });
  const lines = gunzipSync(readFileSync(path)).toString('utf8').trim().split('\n');
  const decoded = lines.map((line) => {
    const { document, ...rest } = JSON.parse(line) as { document?: string };
    return document === undefined
      ? JSON.stringify(rest)
      : EJSON.stringify(BSON.deserialize(Buffer.from(document, 'base64')));
  });
  expect(decoded.length).toBeGreaterThan(records.length / 2);
  expect(foundIn(decoded.join('\n'))).toEqual([]);
  const project = await requireProject(stage.app, estate.project._id.toHexString());
  const declared = JSON.stringify(await declareProject(stage.app, project, new Map()));
  expect(declared).toContain('"providers"');
  // Which webhook is meant is said by its address.
  expect(foundIn(declared).filter((what) => !/([Hh]ook|Schedule) url$/.test(what))).toEqual([]);
});

it('are answered by no route that reads, whoever asks', async () => {
  const project = await requireProject(stage.app, estate.project._id.toHexString());
  const user = (await openUserClient(stage, estate.publishable).signUp()).body as { accessToken: string };
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const callers: Record<string, Record<string, string>> = {
    nobody: {},
    publishable: { 'x-api-key': estate.publishable },
    secret: { 'x-api-key': estate.secret },
    user: { 'x-api-key': estate.publishable, ...bearer(user.accessToken) },
    owner: bearer((await buildOperator(stage, 'owner', [project])).token),
    viewer: bearer((await buildOperator(stage, 'viewer', [project])).token),
    admin: bearer(ADMIN_TOKEN),
  };
  const told: string[] = [];
  const answered: Record<string, number> = {};
  for (const route of ROUTES.filter(({ method }) => method === 'GET')) {
    const path = fill(rowOf(route).path, { ...estate.names, key: estate.publishable });
    for (const [caller, headers] of Object.entries(callers)) {
      const { status, text, headers: own } = await fire(stage, { method: 'GET', path, headers });
      if (status === 200) answered[caller] = (answered[caller] ?? 0) + 1;
      for (const what of foundIn(`${text}\n${JSON.stringify(own)}`)) {
        const isShown = showsAddress(route) && / url$/.test(what) && caller !== 'viewer';
        if (!isShown) told.push(`${caller} reads ${what} at ${route.id}`);
      }
    }
  }
  expect([...new Set(told)]).toEqual([]);
  expect(Math.min(...Object.values(answered))).toBeGreaterThan(10);
  expect(answered.admin).toBeGreaterThan(50);
});
