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
  'a key': {
    ...everyone('401 API_KEY_MISSING'),
    publishable: 'in',
    secret: 'in',
    revoked: '401 API_KEY_INVALID',
    rotated: '401 API_KEY_INVALID',
    user: 'in',
    'disabled user': 'in',
  },
  'a key in the query': {
    ...everyone('401 API_KEY_MISSING'),
    publishable: 'in',
    rotated: '401 API_KEY_INVALID',
    user: 'in',
    'disabled user': 'in',
  },
  'the secret key': {
    ...everyone('401 API_KEY_MISSING'),
    publishable: '403 SECRET_KEY_REQUIRED',
    secret: 'in',
    revoked: '401 API_KEY_INVALID',
    rotated: '401 API_KEY_INVALID',
    user: '403 SECRET_KEY_REQUIRED',
    'disabled user': '403 SECRET_KEY_REQUIRED',
  },
  'the secret key to write': {
    ...everyone('401 API_KEY_MISSING'),
    publishable: '403 WRITE_BLOCKED',
    secret: 'in',
    revoked: '401 API_KEY_INVALID',
    rotated: '401 API_KEY_INVALID',
    user: '403 WRITE_BLOCKED',
    'disabled user': '403 WRITE_BLOCKED',
  },
  'an end user': {
    ...everyone('401 API_KEY_MISSING'),
    publishable: '401 AUTH_REQUIRED',
    secret: '401 AUTH_REQUIRED',
    revoked: '401 API_KEY_INVALID',
    rotated: '401 API_KEY_INVALID',
    user: 'in',
    'disabled user': '401 TOKEN_INVALID',
  },
  'an operator': {
    ...everyone('401 AUTH_REQUIRED'),
    user: '401 TOKEN_INVALID',
    'disabled user': '401 TOKEN_INVALID',
    operator: 'in',
    viewer: 'in',
    admin: 'in',
  },
  'an operator who has signed in': {
    ...everyone('401 AUTH_REQUIRED'),
    user: '401 TOKEN_INVALID',
    'disabled user': '401 TOKEN_INVALID',
    operator: 'in',
    viewer: 'in',
    admin: '403 NOT_SIGNED_IN',
  },
  'an owner': {
    ...everyone('401 AUTH_REQUIRED'),
    user: '401 TOKEN_INVALID',
    'disabled user': '401 TOKEN_INVALID',
    operator: 'in',
    viewer: '403 VIEWER_READS_ONLY',
    admin: 'in',
  },
  'an operator of all projects': {
    ...everyone('401 AUTH_REQUIRED'),
    user: '401 TOKEN_INVALID',
    'disabled user': '401 TOKEN_INVALID',
    operator: '403 ALL_PROJECTS_REQUIRED',
    viewer: '403 ALL_PROJECTS_REQUIRED',
    admin: 'in',
  },
  'an owner of all projects': {
    ...everyone('401 AUTH_REQUIRED'),
    user: '401 TOKEN_INVALID',
    'disabled user': '401 TOKEN_INVALID',
    operator: '403 ALL_PROJECTS_REQUIRED',
    viewer: '403 VIEWER_READS_ONLY',
    admin: 'in',
  },
  'the admin token': {
    ...everyone('401 AUTH_REQUIRED'),
    user: '401 TOKEN_INVALID',
    'disabled user': '401 TOKEN_INVALID',
    operator: '401 TOKEN_INVALID',
    viewer: '401 TOKEN_INVALID',
    admin: 'in',
  },
};

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

  row('POST', '/api/userAuth/signup', 'a key', '400 VALIDATION_FAILED', '400 VALIDATION_FAILED', json({ name: 'Ann' })),
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
  row('POST', '/api/userAuth/logout', 'a key', '200', '200', {
    headers: { 'x-refresh-token': ':refreshToken' },
    spends: true,
  }),
  row('GET', '/api/userAuth/me', 'an end user', '200', '401 AUTH_REQUIRED'),
  row('PATCH', '/api/userAuth/update-profile', 'an end user', '200', '401 AUTH_REQUIRED', json({ name: 'Ann' })),
  row('PUT', '/api/userAuth/update-profile', 'an end user', '200', '401 AUTH_REQUIRED', json({ name: 'Ann' })),
  ...['POST', 'PUT'].map((method) =>
    row(
      method,
      '/api/userAuth/change-password',
      'an end user',
      '200',
      '401 AUTH_REQUIRED',
      once({ currentPassword: ':password', newPassword: 'another one' }),
    ),
  ),
  // The same to everybody, once a minute: whether an address has an account is nobody's business.
  row('POST', '/api/userAuth/request-password-reset', 'a key', '200', '200', once({ email: ':email' })),
  // The code of a sign-up went out a moment ago.
  row(
    'POST',
    '/api/userAuth/resend-verification-otp',
    'a key',
    '429 CODE_SENT_RECENTLY',
    '200',
    once({ email: ':email' }),
  ),
  row(
    'POST',
    '/api/userAuth/reset-password',
    'a key',
    '400 OTP_INVALID',
    '400 OTP_INVALID',
    json({ email: ':email', otp: '000000', newPassword: 'another one' }),
  ),
  row(
    'POST',
    '/api/userAuth/verify-email',
    'a key',
    '400 OTP_INVALID',
    '400 OTP_INVALID',
    json({ email: ':email', otp: '000000' }),
  ),
  row(
    'POST',
    '/api/userAuth/step-up',
    'an end user',
    '200',
    '401 AUTH_REQUIRED',
    json({ currentPassword: ':password' }),
  ),
  row(
    'POST',
    '/api/userAuth/login/code',
    'a key',
    '403 CODE_LOGIN_OFF',
    '403 CODE_LOGIN_OFF',
    json({ email: ':email' }),
  ),
  row(
    'POST',
    '/api/userAuth/login/code/verify',
    'a key',
    '403 CODE_LOGIN_OFF',
    '403 CODE_LOGIN_OFF',
    json({ email: ':email', otp: '123456' }),
  ),
  row(
    'POST',
    '/api/userAuth/login/mfa',
    'a key',
    '401 MFA_TOKEN_INVALID',
    '401 MFA_TOKEN_INVALID',
    json({ mfaToken: 'invented', totp: '123456' }),
  ),
  row('GET', '/api/userAuth/mfa', 'an end user', '200', '401 AUTH_REQUIRED'),
  row('POST', '/api/userAuth/mfa/totp', 'an end user', '403 MFA_OFF', '401 AUTH_REQUIRED', json({})),
  row(
    'POST',
    '/api/userAuth/mfa/totp/confirm',
    'an end user',
    '403 MFA_OFF',
    '401 AUTH_REQUIRED',
    json({ code: '123456' }),
  ),
  row('DELETE', '/api/userAuth/mfa/totp', 'an end user', '409 TOTP_NOT_ENROLLED', '401 AUTH_REQUIRED'),
  row(
    'POST',
    '/api/userAuth/mfa/recovery-codes',
    'an end user',
    '409 TOTP_NOT_ENROLLED',
    '401 AUTH_REQUIRED',
    json({}),
  ),
  row(
    'POST',
    '/api/userAuth/invites',
    'the secret key',
    '400 REDIRECT_NOT_ALLOWED',
    '400 REDIRECT_NOT_ALLOWED',
    json({ email: 'grace@example.test', redirect: 'https://shop.example/join' }),
  ),
  row('GET', '/api/userAuth/invites', 'the secret key', '200', '200'),
  row(
    'POST',
    '/api/userAuth/merges',
    'the secret key',
    '400 MERGE_TOKEN_INVALID',
    '400 MERGE_TOKEN_INVALID',
    json({ mergeToken: 'unknown' }),
  ),
  row(
    'POST',
    '/api/userAuth/invites/accept',
    'an end user',
    '404 INVITE_NOT_FOUND',
    '401 AUTH_REQUIRED',
    json({ token: 'invented' }),
  ),
  row(
    'POST',
    '/api/userAuth/invites/show',
    'a key',
    '404 INVITE_NOT_FOUND',
    '404 INVITE_NOT_FOUND',
    json({ token: 'invented' }),
  ),
  row('DELETE', '/api/userAuth/invites/:invite', 'the secret key', '404 INVITE_NOT_FOUND', '404 INVITE_NOT_FOUND'),
  row('POST', '/api/userAuth/signup/anonymous', 'a key', '403 ANONYMOUS_OFF', '403 ANONYMOUS_OFF', json({})),
  row('POST', '/api/userAuth/login/passkey/options', 'a key', '403 PASSKEYS_OFF', '403 PASSKEYS_OFF'),
  row('POST', '/api/userAuth/login/passkey', 'a key', '403 PASSKEYS_OFF', '403 PASSKEYS_OFF', json(PASSKEY_ANSWER)),
  row('POST', '/api/userAuth/passkeys/options', 'an end user', '403 PASSKEYS_OFF', '401 AUTH_REQUIRED', json({})),
  row('POST', '/api/userAuth/passkeys', 'an end user', '403 PASSKEYS_OFF', '401 AUTH_REQUIRED', json(PASSKEY_ANSWER)),
  row('GET', '/api/userAuth/passkeys', 'an end user', '200', '401 AUTH_REQUIRED'),
  row(
    'PATCH',
    '/api/userAuth/passkeys/:passkey',
    'an end user',
    '404 PASSKEY_NOT_FOUND',
    '401 AUTH_REQUIRED',
    json({ name: 'x' }),
  ),
  row('DELETE', '/api/userAuth/passkeys/:passkey', 'an end user', '404 PASSKEY_NOT_FOUND', '401 AUTH_REQUIRED'),
  row('POST', '/api/userAuth/step-up/code', 'an end user', '200', '401 AUTH_REQUIRED'),
  row('GET', '/api/userAuth/sessions', 'an end user', '200', '401 AUTH_REQUIRED'),
  row('DELETE', '/api/userAuth/sessions/:session', 'an end user', '404 SESSION_NOT_FOUND', '401 AUTH_REQUIRED'),
  row('DELETE', '/api/userAuth/me', 'an end user', '200', '401 AUTH_REQUIRED', once({ currentPassword: ':password' })),
  row('GET', '/api/userAuth/users', 'the secret key', '200', '200'),
  row('POST', '/api/userAuth/users', 'the secret key', '201', '201', once({ email: 'new@example.test' })),
  ofUser('GET', '', '200'),
  ofUser('PATCH', '', '200', json({ name: 'Ann' })),
  ofUser('DELETE', '', '200', once()),
  ofUser('POST', '/disable', '200', once()),
  ofUser('POST', '/enable', '200'),
  ofUser('DELETE', '/sessions', '200', once()),
  ofUser('PUT', '/roles', '200', json({ roles: ['editor'] })),
  ofUser('DELETE', '/mfa', '409 TOTP_NOT_ENROLLED'),
  inProject('DELETE', '/users/:user/mfa', 'an owner', '409 TOTP_NOT_ENROLLED'),
  row('GET', '/api/userAuth/identities', 'an end user', '200', '401 AUTH_REQUIRED'),
  row('DELETE', '/api/userAuth/identities/:provider', 'an end user', '404 IDENTITY_NOT_FOUND', '401 AUTH_REQUIRED'),
  row('GET', '/api/userAuth/public/:username', 'a key', '404 USER_NOT_FOUND', '404 USER_NOT_FOUND'),
  row('GET', '/api/userAuth/jwks.json?key=:key', 'a key in the query', '200', '200'),
  row('GET', '/api/userAuth/verify', 'an end user', '200', '401 AUTH_REQUIRED'),
  row('GET', '/api/userAuth/social/:provider/start?key=:key', 'a key in the query', '302', '404 PROVIDER_NOT_FOUND'),
  row(
    'GET',
    '/api/userAuth/social/:provider/callback',
    'everybody',
    '400 SOCIAL_STATE_INVALID',
    '400 SOCIAL_STATE_INVALID',
  ),
  row(
    'POST',
    '/api/userAuth/social/:provider/callback',
    'everybody',
    '400 SOCIAL_STATE_INVALID',
    '400 SOCIAL_STATE_INVALID',
  ),
  row(
    'POST',
    '/api/userAuth/social/:provider/id-token',
    'a key',
    '401 ID_TOKEN_INVALID',
    '404 PROVIDER_NOT_FOUND',
    json({ idToken: 'x', nonce: 'x' }),
  ),
  row('POST', '/api/userAuth/social/:provider/link', 'an end user', '200', '401 AUTH_REQUIRED', json({})),
  row(
    'POST',
    '/api/userAuth/social/link',
    'an end user',
    '400 SOCIAL_CODE_INVALID',
    '401 AUTH_REQUIRED',
    json({ rtCode: 'x' }),
  ),
  row(
    'POST',
    '/api/userAuth/social/exchange',
    'a key',
    '401 SOCIAL_CODE_INVALID',
    '401 SOCIAL_CODE_INVALID',
    json({ rtCode: 'x' }),
  ),

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
  row('GET', '/files/*path', 'everybody', '404 FILE_NOT_FOUND', '404 FILE_NOT_FOUND'),
  row('PUT', '/files/*path', 'everybody', '403 UPLOAD_URL_INVALID', '403 UPLOAD_URL_INVALID', json('')),

  row(
    'POST',
    '/api/mail/send',
    'the secret key',
    '200',
    '404 TEMPLATE_NOT_FOUND',
    json({ ...MAIL, templateId: ':templateId' }),
  ),
  row('POST', '/api/mail/send-batch', 'the secret key', '200', '200', json([MAIL])),
  row(
    'POST',
    '/api/mail/webhook',
    'everybody',
    '400 INVALID_SIGNATURE',
    '400 INVALID_SIGNATURE',
    json({ type: 'email.sent' }),
  ),
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

  row(
    'POST',
    '/api/admin/login',
    'everybody',
    '400 VALIDATION_FAILED',
    '400 VALIDATION_FAILED',
    json({ email: 'a@b.co' }),
  ),
  row('POST', '/api/admin/login/link', 'everybody', '403 FOREIGN_REQUEST', '403 FOREIGN_REQUEST', json({ link: 'x' })),
  row(
    'POST',
    '/api/admin/me/password',
    'an operator who has signed in',
    '401 INVALID_CREDENTIALS',
    '401 INVALID_CREDENTIALS',
    json({ currentPassword: 'guessed', newPassword: 'long enough' }),
  ),
  row(
    'POST',
    '/api/admin/me/confirm',
    'an operator who has signed in',
    '401 INVALID_CREDENTIALS',
    '401 INVALID_CREDENTIALS',
    json({ password: 'guessed' }),
  ),
  row('GET', '/api/admin/me/sessions', 'an operator who has signed in', '200', '200'),
  row('DELETE', '/api/admin/me/sessions', 'an operator who has signed in', '200', '200'),
  row('GET', '/api/admin/me/views', 'an operator who has signed in', '200', '200'),
  row(
    'POST',
    '/api/admin/me/views',
    'an operator who has signed in',
    '201',
    '404 PROJECT_NOT_FOUND',
    json({ projectId: ':projectId', collection: 'posts', name: 'mine', query: 'sort=title' }),
  ),
  row(
    'DELETE',
    '/api/admin/me/views/:view',
    'an operator who has signed in',
    '404 VIEW_NOT_FOUND',
    '404 VIEW_NOT_FOUND',
  ),
  row('GET', '/api/admin/series', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row('GET', '/api/admin/status', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row('GET', '/api/admin/backups', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row('POST', '/api/admin/backups', 'an owner of all projects', '409 NO_BACKUP_PLACE', '403 ALL_PROJECTS_REQUIRED'),
  row(
    'GET',
    '/api/admin/backups/:name/file',
    'an owner of all projects',
    '404 BACKUP_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
  ),
  row(
    'POST',
    '/api/admin/backups/:name/check',
    'an owner of all projects',
    '404 BACKUP_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
  ),
  row('GET', '/api/admin/jobs', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row(
    'POST',
    '/api/admin/jobs/:job/retry',
    'an owner of all projects',
    '404 JOB_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
  ),
  row('GET', '/api/admin/requests', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row('GET', '/api/admin/settings', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row('GET', '/api/admin/operators', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),
  row(
    'POST',
    '/api/admin/operators',
    'an owner of all projects',
    '201',
    '403 ALL_PROJECTS_REQUIRED',
    once({ email: 'one-more@example.test', password: 'long enough', role: 'owner' }),
  ),
  row(
    'PATCH',
    '/api/admin/operators/:operator',
    'an owner of all projects',
    '404 OPERATOR_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
    json({ role: 'owner' }),
  ),
  row(
    'POST',
    '/api/admin/operators/:operator/password',
    'an owner of all projects',
    '404 OPERATOR_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
    json({ password: 'long enough' }),
  ),
  row(
    'DELETE',
    '/api/admin/operators/:operator',
    'an owner of all projects',
    '404 OPERATOR_NOT_FOUND',
    '403 ALL_PROJECTS_REQUIRED',
  ),
  row('POST', '/api/admin/logout', 'an operator', '200', '200', once()),
  row('GET', '/api/admin/me', 'an operator', '200', '200'),
  row('GET', '/api/admin/audit', 'an operator of all projects', '200', '403 ALL_PROJECTS_REQUIRED'),

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

  row('GET', '/api/health', 'everybody', '200', '200'),
  row('GET', '/api/health/ready', 'everybody', '200', '200'),
  row('GET', '/api/health/live', 'everybody', '200', '200'),
  row('GET', '/', 'everybody', '200', '200'),
  row('GET', '/api/openapi.json', 'everybody', '200', '200'),
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
  ].map((file) => row('GET', `/api/${file}`, 'everybody', '200', '200')),
  row('GET', '/api/docs', 'everybody', '200', '200'),
  row('GET', '/api/docs/operators', 'everybody', '200', '200'),
  row('GET', '/api/docs/page.css', 'everybody', '200', '200'),
  row('GET', '/api/docs/page.js', 'everybody', '200', '200'),
  row('GET', '/api/docs/guides.json', 'everybody', '200', '200'),
  row('GET', '/api/docs/guides/:guide', 'everybody', '200', '200'),
  row('GET', '/api/docs/:page', 'everybody', '200', '200'),
  row('GET', '/api/docs/agents/:skill', 'everybody', '200', '200'),
  row('GET', '/llms.txt', 'everybody', '200', '200'),
  row('GET', '/console', 'everybody', '308', '308'),
  row('GET', '/console/:asset', 'everybody', '404 NOT_FOUND', '404 NOT_FOUND'),
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
