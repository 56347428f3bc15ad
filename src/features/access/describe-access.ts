import { JSON_ERRORS, type Access, type RouteErrors, type SecurityScheme } from '../../http/routes/route.js';

const header = (name: string, description: string): SecurityScheme => ({
  name,
  definition: { type: 'apiKey', in: 'header', name: 'x-api-key', description },
});

const PUBLISHABLE_KEY = header(
  'publishableKey',
  'The project’s publishable key, `pk_live_…`: for browsers and apps. Reads; writes only where row-level security or a rule admits it.',
);
const SECRET_KEY_HEADER = header(
  'secretKey',
  'The project’s secret key, `sk_live_…`: for servers only, since it may do everything.',
);
const QUERY_KEY: SecurityScheme = {
  name: 'publishableKeyInQuery',
  definition: {
    type: 'apiKey',
    in: 'query',
    name: 'key',
    description: 'The publishable key, for pages that a browser opens directly.',
  },
};
const USER_TOKEN: SecurityScheme = {
  name: 'userToken',
  definition: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The `accessToken` of a signed-in end user, in addition to the project’s key.',
  },
};
const OPERATOR_TOKEN: SecurityScheme = {
  name: 'operatorToken',
  definition: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The token of an operator, from `POST /api/admin/login` or `bsvc operator token`; or `BSVC_ADMIN_TOKEN`.',
  },
};

const CONSOLE_COOKIE: SecurityScheme = {
  name: 'consoleCookie',
  definition: {
    type: 'apiKey',
    in: 'cookie',
    name: 'bsvc_console',
    description: 'From `POST /api/admin/login` with `cookie`. Only for requests of the console.',
  },
};

const KEY_ERRORS: RouteErrors = { 401: ['API_KEY_MISSING', 'API_KEY_INVALID'], 403: ['ORIGIN_NOT_ALLOWED'] };
const TOKEN_CODES = ['AUTH_REQUIRED', 'TOKEN_INVALID', 'TOKEN_EXPIRED'];
const FACTOR_WANTED = 'MFA_ENROLMENT_REQUIRED';

const also = (errors: RouteErrors, more: RouteErrors): RouteErrors => ({
  ...errors,
  ...Object.fromEntries(
    Object.entries(more).map(([status, codes]) => [status, [...(errors[Number(status)] ?? []), ...codes]]),
  ),
});

/** authenticateKey */
export const ANY_KEY_DESCRIPTION: Access = {
  note: 'Any valid key of the project.',
  keyIn: 'header',
  security: [[PUBLISHABLE_KEY], [SECRET_KEY_HEADER]],
  errors: KEY_ERRORS,
};

/** authenticateKey and rejectPublishable */
export const SECRET_KEY_DESCRIPTION: Access = {
  note: 'The secret key.',
  keyIn: 'header',
  security: [[SECRET_KEY_HEADER]],
  errors: also(KEY_ERRORS, { 403: ['SECRET_KEY_REQUIRED'] }),
};

/** authenticateQueryKey */
export const KEY_IN_QUERY_DESCRIPTION: Access = {
  note: 'The publishable key, in the query.',
  keyIn: 'query',
  security: [[QUERY_KEY]],
  errors: KEY_ERRORS,
};

/** authenticateKey, and a signed-in user, who may have to enrol a second factor yet. */
export const ENROLLING_DESCRIPTION: Access = {
  note: 'Any valid key of the project, and the token of a signed-in user.',
  keyIn: 'header',
  security: [
    [PUBLISHABLE_KEY, USER_TOKEN],
    [SECRET_KEY_HEADER, USER_TOKEN],
  ],
  errors: also(KEY_ERRORS, { 401: TOKEN_CODES }),
};

/** The same, with the second factor that the project may want. */
export const SIGNED_IN_DESCRIPTION: Access = {
  ...ENROLLING_DESCRIPTION,
  errors: also(ENROLLING_DESCRIPTION.errors, { 403: [FACTOR_WANTED] }),
};

/** readFilter (rest-api.md 5). */
export const READS_DOCUMENTS_DESCRIPTION: Access = {
  note: 'Any valid key. With a publishable key, private collections and rules that require a user also need the token of a signed-in user, who gets only documents that the `read` rule allows.',
  keyIn: 'header',
  security: [[PUBLISHABLE_KEY], [PUBLISHABLE_KEY, USER_TOKEN], [SECRET_KEY_HEADER]],
  errors: also(KEY_ERRORS, {
    400: ['FIELD_NOT_READABLE'],
    401: TOKEN_CODES,
    403: ['USERS_BLOCKED', 'READ_BLOCKED', 'TOO_MANY_MEMBERSHIPS', FACTOR_WANTED],
  }),
};

/** requireWriter (rest-api.md 5). */
const OWN_CODE = ['HOOK_REFUSED'];

/** What the project's own code adds (hooks.md 2): `HOOK_REFUSED` stands for codes of its own, too. */
const HOOK_ERRORS: RouteErrors = {
  ...{ 400: [...OWN_CODE, 'HOOK_DEPTH'], 401: OWN_CODE, 403: OWN_CODE, 404: OWN_CODE, 409: OWN_CODE, 410: OWN_CODE },
  ...{ 412: OWN_CODE, 413: OWN_CODE, 422: OWN_CODE, 503: ['HOOK_FAILED'] },
};

/** An access whose requests the project's own code may be asked about. */
export function withHooks<A extends Access>(access: A): A {
  return { ...access, errors: also(access.errors, HOOK_ERRORS) };
}

export const WRITES_DOCUMENTS_DESCRIPTION: Access = withHooks({
  note: 'The secret key; or the publishable key with the token of a signed-in user, if row-level security or a rule allows it.',
  keyIn: 'header',
  security: [[SECRET_KEY_HEADER], [PUBLISHABLE_KEY], [PUBLISHABLE_KEY, USER_TOKEN]],
  errors: also(KEY_ERRORS, {
    401: TOKEN_CODES,
    403: [
      ...['USERS_BLOCKED', 'WRITE_BLOCKED', 'READ_BLOCKED', 'RULE_REFUSED'],
      ...['FIELD_FIXED', 'FIELD_PROTECTED', 'TOO_MANY_MEMBERSHIPS', FACTOR_WANTED],
    ],
  }),
});

/** decisions.md 6 */
export const UPLOADS_DESCRIPTION: Access = {
  note: 'The secret key. Also the publishable key if the project’s setting `storage.publishableUploads` is on, or with the token of a user who may update the document that the file is attached to.',
  keyIn: 'header',
  security: [[SECRET_KEY_HEADER], [PUBLISHABLE_KEY], [PUBLISHABLE_KEY, USER_TOKEN]],
  errors: also(KEY_ERRORS, {
    401: TOKEN_CODES,
    403: [
      ...['SECRET_KEY_REQUIRED', 'OWNER_MISMATCH', 'USERS_BLOCKED', 'WRITE_BLOCKED', 'READ_BLOCKED', 'RULE_REFUSED'],
      ...['TOO_MANY_MEMBERSHIPS', FACTOR_WANTED],
    ],
  }),
};

/** As UPLOADS; deleteFile compares the user (decisions.md 6). */
export const DELETES_UPLOADS_DESCRIPTION: Access = {
  note: 'The secret key; or the publishable key with the token of the user who uploaded the file, if `storage.publishableUploads` is on, or of a user who may update the document that the file is attached to.',
  keyIn: 'header',
  security: [[SECRET_KEY_HEADER], [PUBLISHABLE_KEY, USER_TOKEN]],
  errors: UPLOADS_DESCRIPTION.errors,
};

const OPERATOR_ERRORS: RouteErrors = { 401: TOKEN_CODES, 403: ['FOREIGN_REQUEST'] };

/** authenticateOperator */
export const OPERATOR_DESCRIPTION: Access = {
  note: 'An operator with any role.',
  security: [[OPERATOR_TOKEN], [CONSOLE_COOKIE]],
  errors: OPERATOR_ERRORS,
};

/** authenticateOperator and requireOwnerRole; the body is read also where none is needed. */
export const OWNER_DESCRIPTION: Access = {
  note: 'An operator with the role `owner`. Recorded in the audit log.',
  security: [[OPERATOR_TOKEN], [CONSOLE_COOKIE]],
  errors: also(also(JSON_ERRORS, OPERATOR_ERRORS), { 403: ['VIEWER_READS_ONLY'] }),
};

/** As OWNER_DESCRIPTION, and requireProven. */
export const PROVEN_OWNER_DESCRIPTION: Access = {
  ...OWNER_DESCRIPTION,
  note: 'An operator with the role `owner`; in the console, with a recently confirmed password. Recorded in the audit log.',
  errors: also(OWNER_DESCRIPTION.errors, { 403: ['PASSWORD_REQUIRED'] }),
};
