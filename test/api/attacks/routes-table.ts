import { ROUTE_LISTS, type Route, type RouteList } from '../../world/app.js';

/** Who may come in by a route. */
export type Pass =
  /** Anybody, without any key. */
  | 'everybody'
  /** Any valid key of the project. */
  | 'a key'
  /** The publishable key, as `?key=`. */
  | 'a key in the query'
  /** The secret key. */
  | 'the secret key'
  /** The secret key; a publishable one only with row-level security, which the collection of these tests has not. */
  | 'the secret key to write'
  /** A live key and the bearer token of an end user. */
  | 'an end user'
  /** An operator who sees the project. */
  | 'an operator'
  /** An operator, but not BSVC_ADMIN_TOKEN, which is nobody's. */
  | 'an operator who has signed in'
  /** An operator who sees the project and is no viewer. */
  | 'an owner'
  /** An operator who sees all projects; those of these tests see one. */
  | 'an operator of all projects'
  /** The same who is no viewer. */
  | 'an owner of all projects'
  /** BSVC_ADMIN_TOKEN. */
  | 'the admin token';

/** The callers, of the project itself. */
export const CALLERS = [
  'nobody',
  'publishable',
  'secret',
  'revoked',
  'rotated',
  'user',
  'disabled user',
  'operator',
  'viewer',
  'admin',
] as const;
export type CallerName = (typeof CALLERS)[number];

/** The answer to each caller for each pass; `in` = what the route answers a caller that is let in. */
export const PASSES: Record<Pass, Record<CallerName, string>> = {
  everybody: everyone('in'),
  'a key': byKey('in'),
  // No secret key is read there, and the revoked one is such a key.
  'a key in the query': { ...byKey('in'), secret: '401 API_KEY_MISSING', revoked: '401 API_KEY_MISSING' },
  'the secret key': { ...byKey('403 SECRET_KEY_REQUIRED'), secret: 'in' },
  'the secret key to write': { ...byKey('403 WRITE_BLOCKED'), secret: 'in' },
  'an end user': { ...byKey('401 AUTH_REQUIRED'), user: 'in', 'disabled user': '401 TOKEN_INVALID' },
  'an operator': byOperator('in', 'in'),
  'an operator who has signed in': byOperator('in', 'in', '403 NOT_SIGNED_IN'),
  'an owner': byOperator('in', '403 VIEWER_READS_ONLY'),
  'an operator of all projects': byOperator('403 ALL_PROJECTS_REQUIRED', '403 ALL_PROJECTS_REQUIRED'),
  'an owner of all projects': byOperator('403 ALL_PROJECTS_REQUIRED', '403 VIEWER_READS_ONLY'),
  'the admin token': byOperator('401 TOKEN_INVALID', '401 TOKEN_INVALID'),
};

/** Where a key is asked for; `outcome` for all that carry a live one. */
function byKey(outcome: string): Record<CallerName, string> {
  return {
    ...everyone('401 API_KEY_MISSING'),
    publishable: outcome,
    secret: outcome,
    revoked: '401 API_KEY_INVALID',
    rotated: '401 API_KEY_INVALID',
    user: outcome,
    'disabled user': outcome,
  };
}

/** Where an operator's token is asked for: a user's is none. */
function byOperator(operator: string, viewer: string, admin = 'in'): Record<CallerName, string> {
  const none = '401 TOKEN_INVALID';
  return { ...everyone('401 AUTH_REQUIRED'), user: none, 'disabled user': none, operator, viewer, admin };
}

function everyone(outcome: string): Record<CallerName, string> {
  return Object.fromEntries(CALLERS.map((caller) => [caller, outcome])) as Record<CallerName, string>;
}

export interface RouteRow {
  method: string;
  /** `:parameters` are filled in from what the project owns. */
  path: string;
  pass: Pass;
  /** What the route answers to who is let in. */
  allowed: string;
  /**
   * The answer to another project that is let in with its own keys and names what is not its own; it never
   * succeeds where something is named.
   */
  foreign: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Uses up what it names: everybody who is let in gets a new project. */
  spends?: true;
}

type More = Pick<RouteRow, 'body' | 'headers' | 'spends'>;

const row = (
  method: string,
  path: string,
  pass: Pass,
  allowed: string,
  foreign: string,
  more: More = {},
): RouteRow => ({
  method,
  path,
  pass,
  allowed,
  foreign,
  ...more,
});
const json = (body: unknown): More => ({ body });
const once = (body?: unknown): More => ({ body, spends: true });

const NO_COLLECTION = '404 COLLECTION_NOT_FOUND';
const NO_FILE = '404 FILE_NOT_FOUND';
const NO_PROJECT = '404 PROJECT_NOT_FOUND';
const NO_BYOK = '403 BYOK_REQUIRED';
const MAIL = { to: 'ann@example.test', subject: 'Hello', text: 'Hello' };
const SOCIAL = { clientId: 'id', clientSecret: 'secret', redirectUrls: ['https://app.example.test/'] };
const FORM = { 'content-type': 'multipart/form-data; boundary=B' };
const FILE = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nbytes\r\n--B--\r\n';

const PASSKEY_ANSWER = { response: { id: 'AA', rawId: 'AA', type: 'public-key', response: {} } };
const OPERATION = { op: 'insert', collection: ':collectionName', body: { text: 'new' } };
const LATER = { at: '2026-03-02T09:00:00.000Z', url: 'http://127.0.0.1:9/later' };
const SUBSCRIPTIONS = { subscriptions: [{ collection: ':collectionName' }] };

const data = (method: string, rest: string, pass: Pass, allowed: string, more: More = {}): RouteRow =>
  row(method, `/api/data/:collectionName${rest}`, pass, allowed, NO_COLLECTION, more);

/** A route of a server about one user of its project. */
const ofUser = (method: string, rest: string, allowed: string, more: More = {}): RouteRow =>
  row(method, `/api/userAuth/users/:user${rest}`, 'the secret key', allowed, '404 USER_NOT_FOUND', more);

/** A route below one project: everybody else is told that there is no such project. */
const inProject = (method: string, rest: string, pass: Pass, allowed: string, more: More = {}): RouteRow =>
  row(method, `/api/projects/:projectId${rest}`, pass, allowed, NO_PROJECT, more);

/** A route of accounts that anybody's key reaches and that answers each project alike. */
const account = (method: string, rest: string, answer: string, more: More = {}): RouteRow =>
  row(method, `/api/userAuth${rest}`, 'a key', answer, answer, more);

/** A route of a server about the accounts of its project. */
const accounts = (method: string, rest: string, answer: string, more: More = {}): RouteRow =>
  row(method, `/api/userAuth${rest}`, 'the secret key', answer, answer, more);

/** A route about the user who asks: to another project the token is nobody's. */
const ofSelf = (method: string, rest: string, allowed: string, more: More = {}): RouteRow =>
  row(method, `/api/userAuth${rest}`, 'an end user', allowed, '401 AUTH_REQUIRED', more);

/** A route about the operator who asks. */
const ofOperator = (method: string, rest: string, answer: string, more: More = {}): RouteRow =>
  row(method, `/api/admin/me${rest}`, 'an operator who has signed in', answer, answer, more);

/** A route about the whole service: who sees all projects reads, and changes unless a viewer. */
const ofService = (method: string, rest: string, allowed: string, more: More = {}): RouteRow => {
  const pass = method === 'GET' ? 'an operator of all projects' : 'an owner of all projects';
  return row(method, `/api/admin${rest}`, pass, allowed, '403 ALL_PROJECTS_REQUIRED', more);
};

const open = (method: string, path: string, answer: string, more: More = {}): RouteRow =>
  row(method, path, 'everybody', answer, answer, more);

/** Rows of the routes that tell something else than their place says (`byPlace`). */
const OWN_ROWS: readonly RouteRow[] = [
  data('GET', '', 'a key', '200'),
  data('GET', '/:document', 'a key', '200'),
  data('POST', '', 'the secret key to write', '201', json({ text: 'new' })),
  data('POST', '/bulk', 'the secret key to write', '201', json([{ text: 'new' }])),
  data('POST', '/aggregate', 'a key', '200', json({ pipeline: [{ $match: {} }] })),
  data('GET', '/changes', 'a key', '200'),
  data('PUT', '/:document', 'the secret key to write', '200', json({ text: 'changed' })),
  data('PATCH', '/:document', 'the secret key to write', '200', json({ text: 'changed' })),
  data('PATCH', '?text=none&confirm=0', 'the secret key', '200', json({ text: 'changed' })),
  data('DELETE', '?text=none&confirm=0', 'the secret key', '200'),
  data('PATCH', '/:trashed/recover', 'the secret key to write', '200', once()),
  data('DELETE', '/:document', 'the secret key to write', '200', once()),
  row('POST', '/api/schedules', 'the secret key', '201', '201', json(LATER)),
  row('GET', '/api/schedules', 'the secret key', '200', '200'),
  row('GET', '/api/schedules/:call', 'the secret key', '200', '404 SCHEDULE_NOT_FOUND'),
  row('DELETE', '/api/schedules/:call', 'the secret key', '200', '404 SCHEDULE_NOT_FOUND', once()),
  row('POST', '/api/batch', 'the secret key to write', '200', NO_COLLECTION, json({ operations: [OPERATION] })),
  row('POST', '/api/realtime', 'a key', '200', NO_COLLECTION, json(SUBSCRIPTIONS)),
  row('POST', '/api/realtime/ticket', 'a key', '201', '201'),

  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) =>
    row(method, '/api/run/*address', 'a key', '404 RUN_NOT_FOUND', '404 RUN_NOT_FOUND'),
  ),

  row('GET', '/api/schemas/:collectionName', 'a key', '200', NO_COLLECTION),
  ...['types.d.ts', 'openapi.json', 'schema.json', 'brief.md'].map((file) =>
    row('GET', `/api/schemas/${file}`, 'a key', '200', '200'),
  ),
  row('POST', '/api/schemas', 'the secret key', '201', '201', once({ name: 'added', mode: 'flexible' })),

  account('POST', '/signup', '400 VALIDATION_FAILED', json({ name: 'Ann' })),
  row(
    'POST',
    '/api/userAuth/login',
    'a key',
    '200',
    '401 INVALID_CREDENTIALS',
    json({ email: ':email', password: ':password' }),
  ),
  row('POST', '/api/userAuth/refresh-token', 'a key', '200', '401 REFRESH_INVALID', {
    headers: { 'x-refresh-token': ':refreshToken' },
    spends: true,
  }),
  // It says so to everybody, whether or not there was a session to end.
  account('POST', '/logout', '200', {
    headers: { 'x-refresh-token': ':refreshToken' },
    spends: true,
  }),
  ofSelf('GET', '/me', '200'),
  ofSelf('PATCH', '/update-profile', '200', json({ name: 'Ann' })),
  ofSelf('PUT', '/update-profile', '200', json({ name: 'Ann' })),
  ...['POST', 'PUT'].map((method) =>
    ofSelf(method, '/change-password', '200', once({ currentPassword: ':password', newPassword: 'another one' })),
  ),
  // The same to everybody, once a minute: whether an address has an account is nobody's business.
  account('POST', '/request-password-reset', '200', once({ email: ':email' })),
  // The code of a sign-up went out a moment ago.
  row(
    'POST',
    '/api/userAuth/resend-verification-otp',
    'a key',
    '429 CODE_SENT_RECENTLY',
    '200',
    once({ email: ':email' }),
  ),
  account(
    'POST',
    '/reset-password',
    '400 OTP_INVALID',
    json({ email: ':email', otp: '000000', newPassword: 'another one' }),
  ),
  account('POST', '/verify-email', '400 OTP_INVALID', json({ email: ':email', otp: '000000' })),
  ofSelf('POST', '/step-up', '200', json({ currentPassword: ':password' })),
  account('POST', '/login/code', '403 CODE_LOGIN_OFF', json({ email: ':email' })),
  account('POST', '/login/code/verify', '403 CODE_LOGIN_OFF', json({ email: ':email', otp: '123456' })),
  account('POST', '/login/mfa', '401 MFA_TOKEN_INVALID', json({ mfaToken: 'invented', totp: '123456' })),
  ofSelf('GET', '/mfa', '200'),
  ofSelf('POST', '/mfa/totp', '403 MFA_OFF', json({})),
  ofSelf('POST', '/mfa/totp/confirm', '403 MFA_OFF', json({ code: '123456' })),
  ofSelf('DELETE', '/mfa/totp', '409 TOTP_NOT_ENROLLED'),
  ofSelf('POST', '/mfa/recovery-codes', '409 TOTP_NOT_ENROLLED', json({})),
  accounts(
    'POST',
    '/invites',
    '400 REDIRECT_NOT_ALLOWED',
    json({ email: 'grace@example.test', redirect: 'https://shop.example/join' }),
  ),
  accounts('GET', '/invites', '200'),
  accounts('POST', '/merges', '400 MERGE_TOKEN_INVALID', json({ mergeToken: 'unknown' })),
  ofSelf('POST', '/invites/accept', '404 INVITE_NOT_FOUND', json({ token: 'invented' })),
  account('POST', '/invites/show', '404 INVITE_NOT_FOUND', json({ token: 'invented' })),
  accounts('DELETE', '/invites/:invite', '404 INVITE_NOT_FOUND'),
  account('POST', '/signup/anonymous', '403 ANONYMOUS_OFF', json({})),
  account('POST', '/login/passkey/options', '403 PASSKEYS_OFF'),
  account('POST', '/login/passkey', '403 PASSKEYS_OFF', json(PASSKEY_ANSWER)),
  ofSelf('POST', '/passkeys/options', '403 PASSKEYS_OFF', json({})),
  ofSelf('POST', '/passkeys', '403 PASSKEYS_OFF', json(PASSKEY_ANSWER)),
  ofSelf('GET', '/passkeys', '200'),
  ofSelf('PATCH', '/passkeys/:passkey', '404 PASSKEY_NOT_FOUND', json({ name: 'x' })),
  ofSelf('DELETE', '/passkeys/:passkey', '404 PASSKEY_NOT_FOUND'),
  ofSelf('POST', '/step-up/code', '200'),
  ofSelf('GET', '/sessions', '200'),
  ofSelf('DELETE', '/sessions/:session', '404 SESSION_NOT_FOUND'),
  ofSelf('DELETE', '/me', '200', once({ currentPassword: ':password' })),
  accounts('GET', '/users', '200'),
  accounts('POST', '/users', '201', once({ email: 'new@example.test' })),
  ofUser('GET', '', '200'),
  ofUser('PATCH', '', '200', json({ name: 'Ann' })),
  ofUser('DELETE', '', '200', once()),
  ofUser('POST', '/disable', '200', once()),
  ofUser('POST', '/enable', '200'),
  ofUser('DELETE', '/sessions', '200', once()),
  ofUser('PUT', '/roles', '200', json({ roles: ['editor'] })),
  ofUser('DELETE', '/mfa', '409 TOTP_NOT_ENROLLED'),
  inProject('DELETE', '/users/:user/mfa', 'an owner', '409 TOTP_NOT_ENROLLED'),
  ofSelf('GET', '/identities', '200'),
  ofSelf('DELETE', '/identities/:provider', '404 IDENTITY_NOT_FOUND'),
  account('GET', '/public/:username', '404 USER_NOT_FOUND'),
  row('GET', '/api/userAuth/jwks.json?key=:key', 'a key in the query', '200', '200'),
  ofSelf('GET', '/verify', '200'),
  row('GET', '/api/userAuth/social/:provider/start?key=:key', 'a key in the query', '302', '404 PROVIDER_NOT_FOUND'),
  open('GET', '/api/userAuth/social/:provider/callback', '400 SOCIAL_STATE_INVALID'),
  open('POST', '/api/userAuth/social/:provider/callback', '400 SOCIAL_STATE_INVALID'),
  row(
    'POST',
    '/api/userAuth/social/:provider/id-token',
    'a key',
    '401 ID_TOKEN_INVALID',
    '404 PROVIDER_NOT_FOUND',
    json({ idToken: 'x', nonce: 'x' }),
  ),
  ofSelf('POST', '/social/:provider/link', '200', json({})),
  ofSelf('POST', '/social/link', '400 SOCIAL_CODE_INVALID', json({ rtCode: 'x' })),
  account('POST', '/social/exchange', '401 SOCIAL_CODE_INVALID', json({ rtCode: 'x' })),

  row('POST', '/api/storage/upload', 'the secret key', '201', '201', { body: FILE, headers: FORM }),
  row(
    'POST',
    '/api/storage/upload-request',
    'the secret key',
    '200',
    '200',
    json({ filename: 'a.txt', contentType: 'text/plain', size: 6 }),
  ),
  row(
    'POST',
    '/api/storage/upload-confirm',
    'the secret key',
    '409 UPLOAD_NOT_READY',
    NO_FILE,
    json({ filePath: ':pendingPath', size: 6 }),
  ),
  // A link says of no path more than that there is nothing to read.
  row('GET', '/api/storage/files/*path/link', 'a key', NO_FILE, NO_FILE),
  row('POST', '/api/storage/links', 'a key', '200', '200', json({ paths: ['a/b'] })),
  row('GET', '/api/storage/attached/:collectionName/:document', 'a key', '200', NO_COLLECTION),
  row('DELETE', '/api/storage/file', 'the secret key', '200', NO_FILE, once({ path: ':path' })),
  row('DELETE', '/api/storage/all', 'the secret key', '200', '200', once()),
  // Public by its address, and a signed address is for whoever has it.
  open('GET', '/files/*path', '404 FILE_NOT_FOUND'),
  open('PUT', '/files/*path', '403 UPLOAD_URL_INVALID', json('')),

  row(
    'POST',
    '/api/mail/send',
    'the secret key',
    '200',
    '404 TEMPLATE_NOT_FOUND',
    json({ ...MAIL, templateId: ':templateId' }),
  ),
  row('POST', '/api/mail/send-batch', 'the secret key', '200', '200', json([MAIL])),
  open('POST', '/api/mail/webhook', '400 INVALID_SIGNATURE', json({ type: 'email.sent' })),
  ...mail((method, rest, allowed, foreign, more) =>
    row(method, `/api/mail${rest}`, 'the secret key', allowed, foreign, more),
  ),
  ...mail((method, rest, allowed, _foreign, more) =>
    inProject(method, `/mail${rest}`, method === 'GET' ? 'an operator' : 'an owner', allowed, more),
  ),
  inProject('PUT', '/mail/templates/:template', 'an owner', '200', json({ subject: 's', text: 't' })),

  inProject('POST', '/webhooks', 'an owner', '201', json({ url: 'http://127.0.0.1:9/', events: ['*'] })),
  inProject('PATCH', '/webhooks/:webhook', 'an owner', '200', json({ description: 'x' })),
  inProject('POST', '/webhooks/:webhook/rotate-secret', 'an owner', '200'),
  inProject('POST', '/webhooks/:webhook/test', 'an owner', '200'),
  inProject('POST', '/files', 'an owner', '201', { body: FILE, headers: FORM }),
  inProject('DELETE', '/files', 'an owner', '200', once({ path: ':path' })),
  inProject('POST', '/webhooks/:webhook/deliveries/:delivery/replay', 'an owner', '202'),

  open('POST', '/api/admin/login', '400 VALIDATION_FAILED', json({ email: 'a@b.co' })),
  open('POST', '/api/admin/login/link', '403 FOREIGN_REQUEST', json({ link: 'x' })),
  ofOperator(
    'POST',
    '/password',
    '401 INVALID_CREDENTIALS',
    json({ currentPassword: 'guessed', newPassword: 'long enough' }),
  ),
  ofOperator('POST', '/confirm', '401 INVALID_CREDENTIALS', json({ password: 'guessed' })),
  ofOperator('GET', '/sessions', '200'),
  ofOperator('DELETE', '/sessions', '200'),
  ofOperator('GET', '/views', '200'),
  row(
    'POST',
    '/api/admin/me/views',
    'an operator who has signed in',
    '201',
    '404 PROJECT_NOT_FOUND',
    json({ projectId: ':projectId', collection: 'posts', name: 'mine', query: 'sort=title' }),
  ),
  ofOperator('DELETE', '/views/:view', '404 VIEW_NOT_FOUND'),
  ofService('GET', '/series', '200'),
  ofService('GET', '/status', '200'),
  ofService('GET', '/backups', '200'),
  ofService('POST', '/backups', '409 NO_BACKUP_PLACE'),
  row(
    'GET',
    '/api/admin/backups/:name/file',
    'an owner of all projects',
    '404 BACKUP_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
  ),
  ofService('POST', '/backups/:name/check', '404 BACKUP_NOT_FOUND'),
  ofService('GET', '/jobs', '200'),
  ofService('POST', '/jobs/:job/retry', '404 JOB_NOT_FOUND'),
  ofService('GET', '/requests', '200'),
  ofService('GET', '/settings', '200'),
  ofService('GET', '/operators', '200'),
  ofService(
    'POST',
    '/operators',
    '201',
    once({ email: 'one-more@example.test', password: 'long enough', role: 'owner' }),
  ),
  ofService('PATCH', '/operators/:operator', '404 OPERATOR_NOT_FOUND', json({ role: 'owner' })),
  ofService('POST', '/operators/:operator/password', '404 OPERATOR_NOT_FOUND', json({ password: 'long enough' })),
  ofService('DELETE', '/operators/:operator', '404 OPERATOR_NOT_FOUND'),
  row('POST', '/api/admin/logout', 'an operator', '200', '200', once()),
  row('GET', '/api/admin/me', 'an operator', '200', '200'),
  ofService('GET', '/audit', '200'),

  row('GET', '/api/projects', 'an operator', '200', '200'),
  row(
    'POST',
    '/api/projects',
    'an owner of all projects',
    '201',
    '403 ALL_PROJECTS_REQUIRED',
    json({ name: 'one more' }),
  ),
  inProject('PATCH', '', 'an owner', '200', json({ providerWebhookSecret: null })),
  inProject('POST', '/recount', 'an owner', '200'),
  inProject('POST', '/rotate-tokens', 'an owner', '200', once({ grace: '0s' })),
  inProject(
    'POST',
    '/invites',
    'an owner',
    '400 REDIRECT_NOT_ALLOWED',
    json({ email: 'a@b.test', redirect: 'https://a.test/' }),
  ),
  inProject('DELETE', '/invites/:invite', 'an owner', '404 INVITE_NOT_FOUND'),
  inProject('POST', '/mail/logs/:mail/text', 'an owner', '404 EMAIL_NOT_FOUND'),
  inProject('POST', '/mail/test', 'an owner', '200', json({ to: 'me@example.test' })),
  inProject('PUT', '/schema', 'an owner', '200', json({ format: 'bsvc-schema/1', collections: [] })),
  inProject('PUT', '/social/:provider', 'an owner', '200', json(SOCIAL)),
  inProject(
    'POST',
    '/collections/:collection/documents/aggregate',
    'an operator',
    '200',
    json({ pipeline: [{ $match: {} }] }),
  ),
  inProject('POST', '/collections/:collection/documents/explain', 'an operator', '200', json({ query: 'limit=1' })),
  inProject('POST', '/collections/:collection/documents/import', 'an owner', '200', json({ documents: [{ a: 1 }] })),
  inProject('POST', '/collections/:collection/documents', 'an owner', '201', json({ text: 'new' })),
  inProject('POST', '/collections/:collection/documents/trash', 'an owner', '200', once({ ids: [':document'] })),
  inProject('POST', '/collections/:collection/documents/recover', 'an owner', '200', once({ ids: [':trashed'] })),
  inProject('PATCH', '/collections/:collection/documents/:document', 'an owner', '200', json({ text: 'changed' })),
  inProject('PATCH', '/collections/:collection/documents/:trashed/recover', 'an owner', '200', once()),
  inProject('POST', '/bucket/check', 'an owner', '404 NO_BUCKET'),
  inProject('PUT', '/bucket/cors', 'an owner', '404 NO_BUCKET', json({ origins: ['*'] })),
  inProject('POST', '/collections', 'an owner', '201', once({ name: 'added', mode: 'flexible' })),
  inProject('PATCH', '/collections/:collection', 'an owner', '200', json({ mode: 'flexible' })),
  inProject('PUT', '/collections/:collection/rls', 'an owner', '200', json({ enabled: false })),
  inProject('PUT', '/collections/:collection/rules', 'an owner', '200', json({ rules: null })),
  inProject('POST', '/rules/:collection/check', 'an operator', '200', json({ rules: null })),
  inProject('PUT', '/collections/:collection/changes', 'an owner', '200', json({ on: true })),
  inProject('POST', '/collections/:collection/rename', 'an owner', '200', once({ name: 'other' })),
  inProject('POST', '/keys', 'an owner', '201', json({ type: 'secret' })),
  inProject('POST', '/keys/rotate', 'an owner', '201', once({ type: 'secret' })),
  inProject('POST', '/users', 'an owner', '201', once({ email: 'new@example.test', password: 'long enough' })),
  inProject('PATCH', '/users/:user', 'an owner', '200', json({ name: 'Ann' })),
  inProject('POST', '/users/:user/set-password', 'an owner', '200', once({ password: 'another one' })),
  inProject('POST', '/users/:user/enable', 'an owner', '200'),
  inProject(
    'PUT',
    '/bucket',
    'an owner',
    '200',
    once({ bucket: 'bucket', accessKeyId: 'i', secretAccessKey: 's', endpoint: 'http://127.0.0.1:9', verify: false }),
  ),
  inProject('DELETE', '/bucket', 'an owner', '200'),

  open('GET', '/api/health', '200'),
  open('GET', '/api/health/ready', '200'),
  open('GET', '/api/health/live', '200'),
  open('GET', '/', '200'),
  open('GET', '/api/openapi.json', '200'),
  ...[
    'client.js',
    'client-accounts.js',
    'client-tabs.js',
    'client-react.js',
    'client-rxdb.js',
    'client-tanstack.js',
    'client-offline.js',
    'client.d.ts',
    'client.tgz',
  ].map((file) => open('GET', `/api/${file}`, '200')),
  open('GET', '/api/docs', '200'),
  open('GET', '/api/docs/operators', '200'),
  open('GET', '/api/docs/page.css', '200'),
  open('GET', '/api/docs/page.js', '200'),
  open('GET', '/api/docs/guides.json', '200'),
  open('GET', '/api/docs/guides/:guide', '200'),
  open('GET', '/api/docs/:page', '200'),
  open('GET', '/api/docs/agents/:skill', '200'),
  open('GET', '/llms.txt', '200'),
  open('GET', '/console', '308'),
  open('GET', '/console/:asset', '404 NOT_FOUND'),
  row('GET', '/metrics', 'the admin token', '200', '401 AUTH_REQUIRED'),
];

/** Every route of the service: whom it lets in, what it answers them, and what it tells another project. */
export const ROUTE_TABLE: readonly RouteRow[] = [...OWN_ROWS, ...byPlace()];

/**
 * Routes below a project without a row of their own: any operator reads, an owner changes, with the body that the API's
 * document shows. Who is let in is said by the place and not by the route, so that a route cannot let in too many
 * unseen.
 */
function byPlace(): RouteRow[] {
  const below = '/api/projects/:projectId';
  const own = new Set(OWN_ROWS.map(patternOf));
  const routes = ROUTE_LISTS.flatMap((list) => list.routes).filter(
    (one) => (one.path === below || one.path.startsWith(`${below}/`)) && !own.has(patternOf(one)),
  );
  return routes.map(({ method, path, answers, example }) => {
    const rest = path.slice(below.length).replace(/(\w+)s\/:id\b/, '$1s/:$1');
    if (method === 'GET') return inProject(method, rest, 'an operator', '200');
    return inProject(method, rest, 'an owner', String([answers].flat()[0]!.status), once(example));
  });
}

/** What a secret key and an operator may do alike with a project's mail. */
function mail(
  make: (method: string, rest: string, allowed: string, foreign: string, more?: More) => RouteRow,
): RouteRow[] {
  return [
    make('GET', '/logs', '200', '200'),
    make('GET', '/logs/:mail', '200', '404 NOT_FOUND'),
    make('GET', '/logs/:mail/live', '200', '404 NOT_FOUND'),
    make('GET', '/audiences', '200', NO_BYOK),
    make('POST', '/audiences', '200', NO_BYOK, json({ name: 'all' })),
    make('DELETE', '/audiences/:audience', '200', NO_BYOK, once()),
    make('GET', '/audiences/:audience/contacts', '200', NO_BYOK),
    make('POST', '/audiences/:audience/contacts', '200', NO_BYOK, json({ email: 'bob@example.test' })),
    make('PATCH', '/audiences/:audience/contacts/:contact', '200', NO_BYOK, json({ firstName: 'Bob' })),
    make('DELETE', '/audiences/:audience/contacts/:contact', '200', NO_BYOK, once()),
    make('POST', '/broadcasts', '200', NO_BYOK, json({ audienceId: ':audience', subject: 's', text: 't' })),
    make('POST', '/broadcasts/:broadcast/send', '200', NO_BYOK, once()),
    make('GET', '/broadcasts', '200', NO_BYOK),
    make('GET', '/broadcasts/:broadcast', '200', NO_BYOK),
    make('DELETE', '/broadcasts/:broadcast', '200', NO_BYOK, once()),
  ];
}

/** A path as the router knows it: without the names that this table has for its parameters. */
export function patternOf({ method, path }: Pick<RouteRow, 'method' | 'path'>): string {
  return `${method} ${path.split('?')[0]!.replace(/:\w+/g, ':')}`;
}

/** Fills in the names; a `:name` alone is a whole text in bodies and headers too. */
export function fill<T>(template: T, names: Readonly<Record<string, string>>): T {
  if (typeof template === 'string')
    return template.replace(/:([A-Za-z]+)/g, (whole, name: string) => names[name] ?? whole) as T;
  if (Array.isArray(template)) return template.map((item: unknown) => fill(item, names)) as T;
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, fill(value, names)])) as T;
}

/** The route that a row is about, with its list. */
export function routeOf({ method, path }: Pick<RouteRow, 'method' | 'path'>): { list: RouteList; route: Route } {
  const given = path.split('?')[0]!.split('/');
  // Rows have the names of parameters where routes have them, or values in their place.
  const isAt = (parts: readonly string[]): boolean => {
    const rest = parts.findIndex((part) => part.startsWith('*'));
    if (rest >= 0) {
      const behind = parts.slice(rest + 1);
      const isLong = given.length >= parts.length;
      return (
        isLong && isBegun(parts.slice(0, rest)) && behind.every((part, at) => part === given.at(at - behind.length))
      );
    }
    return parts.length === given.length && isBegun(parts);
  };
  const isBegun = (parts: readonly string[]): boolean =>
    parts.every((part, at) => part.startsWith(':') || part === given[at]);
  for (const list of ROUTE_LISTS) {
    const route = list.routes.find((each) => each.method === method && isAt(each.path.split('/')));
    if (route) return { list, route };
  }
  throw new Error(`no route is ${method} ${path}`);
}
