import {
  DONE,
  done,
  jsonAnswer,
  jsonBody,
  listOf,
  naming,
  object,
  ok,
  openObject,
  orNull,
  parameter,
  TEXT,
  type Body,
  type GroupDescription,
  type RouteDescription,
  type Schema,
} from '../../http/routes/route-description.js';
import { ANY_KEY, SIGNED_IN } from '../access/describe-access.js';
import { EMAIL, IDENTITY, NEW_USER, PASSWORD, PROFILE_CHANGES, PUBLIC_USER, USER } from './accounts/describe-user.js';
import { describeSocialRoutes } from './describe-social-routes.js';
import { REFRESH_MODE, TOKEN_FIELDS, TOKEN_HEADERS } from './sessions/describe-tokens.js';

const SIGNED_IN_REPLY: Schema = object({ user: USER, ...TOKEN_FIELDS }, 'SignedIn');
const OTP: Schema = { type: 'string', minLength: 1, maxLength: 72, examples: ['123456'] };
const CODE_REQUESTED = jsonAnswer('The same whether or not the address has an account', DONE);

const REFRESH_TOKEN = {
  'x-refresh-token': parameter(
    'The refresh token; browsers send it as the cookie `bsvc_rt_<project id>` instead',
    TEXT,
  ),
};

/** Other fields are ignored. */
const texts = (fields: Record<string, Schema>, example: Record<string, string>): Body =>
  jsonBody(openObject(fields), example);

const UPDATE = {
  description:
    'Only the given fields change. A new address is pending until its code is confirmed by `verify-email`; the present one is told by mail. With the secret key it counts at once, unconfirmed unless `emailVerified` says otherwise.',
  access: SIGNED_IN,
  body: jsonBody(PROFILE_CHANGES, { name: 'Ada Lovelace' }),
  answers: {
    200: jsonAnswer(
      'The user; `pendingEmail` is the new address that waits for its code',
      object({ success: { const: true }, data: USER, 'pendingEmail?': orNull(TEXT), message: TEXT }),
    ),
  },
  refuses: {
    400: ['VALIDATION_FAILED', 'CURRENT_PASSWORD_REQUIRED'],
    401: ['INVALID_CREDENTIALS'],
    409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING', 'CHANGED_MEANWHILE'],
    413: ['DOCUMENT_TOO_LARGE'],
    423: ['ACCOUNT_LOCKED'],
    503: ['BUSY'],
  },
} satisfies Partial<RouteDescription>;

const CHANGE_PASSWORD = {
  description: 'Ends all other sessions of the user.',
  access: SIGNED_IN,
  body: texts(
    { currentPassword: { ...PASSWORD, description: 'As it is.' }, newPassword: PASSWORD },
    { currentPassword: 'correct horse battery', newPassword: 'staple correct horse' },
  ),
  answers: done('Changed'),
  refuses: {
    400: ['VALIDATION_FAILED'],
    401: ['INVALID_CREDENTIALS'],
    409: ['CHANGED_MEANWHILE'],
    423: ['ACCOUNT_LOCKED'],
    503: ['BUSY'],
  },
} satisfies Partial<RouteDescription>;

/** As in routes.ts and social-routes.ts. */
export const USER_ROUTES: GroupDescription = {
  prefix: '/api/userAuth',
  tag: 'Users',
  about:
    'End users of a project: sign-up, sign-in, sessions, profiles. The secret key may set fields that are protected from users.',
  routes: {
    'POST /signup': {
      id: 'signUp',
      summary: 'Create an account and sign in',
      description: 'Takes any field of the collection `users` besides; protected ones with the secret key only.',
      access: ANY_KEY,
      headers: REFRESH_MODE,
      body: jsonBody(NEW_USER, { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada' }),
      answers: { 201: jsonAnswer('The user, signed in', SIGNED_IN_REPLY, TOKEN_HEADERS) },
      refuses: {
        400: ['VALIDATION_FAILED'],
        401: ['INVALID_CREDENTIALS'],
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE'],
        503: ['BUSY'],
      },
    },
    'POST /login': {
      id: 'logIn',
      summary: 'Sign in',
      access: ANY_KEY,
      headers: REFRESH_MODE,
      body: texts(
        { email: EMAIL, password: PASSWORD },
        { email: 'ada@example.com', password: 'correct horse battery' },
      ),
      answers: { 200: jsonAnswer('The user, signed in', SIGNED_IN_REPLY, TOKEN_HEADERS) },
      refuses: {
        400: ['VALIDATION_FAILED'],
        401: ['INVALID_CREDENTIALS'],
        403: ['ACCOUNT_DISABLED'],
        423: ['ACCOUNT_LOCKED'],
        503: ['BUSY'],
      },
    },
    'POST /refresh-token': {
      id: 'refreshSession',
      summary: 'Exchange the refresh token for new tokens',
      description:
        'Each refresh token works once; presenting one again ends its session. The cookie counts without an `Origin`, for the service’s own and for origins that the project’s allowlist names (not by `*`); one that came by cookie is answered as cookie alone.',
      access: ANY_KEY,
      headers: { ...REFRESH_TOKEN, ...REFRESH_MODE },
      answers: {
        200: jsonAnswer('New tokens', object({ success: { const: true }, ...TOKEN_FIELDS }), TOKEN_HEADERS),
      },
      refuses: { 401: ['REFRESH_INVALID', 'REFRESH_REUSED', 'COOKIE_NOT_ACCEPTED'] },
    },
    'POST /logout': {
      id: 'logOut',
      summary: 'End the session of the presented refresh token',
      access: ANY_KEY,
      headers: REFRESH_TOKEN,
      answers: done('Signed out, also when nothing was presented'),
      refuses: { 401: ['COOKIE_NOT_ACCEPTED'] },
    },
    'GET /me': {
      id: 'getMe',
      summary: 'Get the signed-in user',
      access: SIGNED_IN,
      answers: { 200: jsonAnswer('The user itself', USER) },
    },
    'PATCH /update-profile': { id: 'updateProfile', summary: 'Change fields of the signed-in user', ...UPDATE },
    'PUT /update-profile': { id: 'putProfile', summary: 'Change fields of the signed-in user (as PATCH)', ...UPDATE },
    'POST /change-password': { id: 'changePassword', summary: 'Change the password', ...CHANGE_PASSWORD },
    'PUT /change-password': { id: 'putPassword', summary: 'Change the password (as POST)', ...CHANGE_PASSWORD },
    'POST /request-password-reset': {
      id: 'requestPasswordReset',
      summary: 'Have a code mailed that resets the password',
      access: ANY_KEY,
      body: texts({ email: EMAIL }, { email: 'ada@example.com' }),
      answers: { 200: CODE_REQUESTED },
      refuses: { 400: ['VALIDATION_FAILED'] },
    },
    'POST /reset-password': {
      id: 'resetPassword',
      summary: 'Set a new password with a mailed code',
      access: ANY_KEY,
      body: texts(
        { email: EMAIL, otp: OTP, newPassword: PASSWORD },
        { email: 'ada@example.com', otp: '123456', newPassword: 'staple correct horse' },
      ),
      answers: done('Set; every session has ended'),
      refuses: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'], 503: ['BUSY'] },
    },
    'POST /verify-email': {
      id: 'verifyEmail',
      summary: 'Confirm the e-mail address with a mailed code',
      description:
        'The account’s own address, or the pending one of update-profile, which then takes its place. Whoever confirms an address for the first time owns the account: linked identities, sessions and tokens end, but for the session whose access token comes along as bearer.',
      access: ANY_KEY,
      body: texts({ email: EMAIL, otp: OTP }, { email: 'ada@example.com', otp: '123456' }),
      answers: done('Confirmed'),
      refuses: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'], 409: ['EMAIL_TAKEN'] },
    },
    'POST /resend-verification-otp': {
      id: 'resendVerification',
      summary: 'Have the code mailed again',
      access: ANY_KEY,
      body: texts({ email: EMAIL }, { email: 'ada@example.com' }),
      answers: { 200: CODE_REQUESTED },
      refuses: { 400: ['VALIDATION_FAILED'] },
    },
    'GET /identities': {
      id: 'listIdentities',
      summary: 'List the identities at sign-in providers that open the account',
      access: SIGNED_IN,
      answers: ok('All of them, the oldest first', listOf(IDENTITY)),
    },
    'DELETE /identities/:provider': {
      id: 'unlinkIdentity',
      summary: 'Unlink the identities of a provider and end all other sessions',
      access: SIGNED_IN,
      path: { provider: naming('Name of the provider', 'IDENTITY_NOT_FOUND') },
      answers: done('Unlinked'),
      refuses: { 409: ['LAST_WAY_IN', 'CHANGED_MEANWHILE'] },
    },
    'GET /public/:username': {
      id: 'getPublicProfile',
      summary: 'Get the public fields of a user',
      access: ANY_KEY,
      path: { username: naming('Value of the unique field `username`', 'USER_NOT_FOUND') },
      answers: { 200: jsonAnswer('The profile itself', PUBLIC_USER) },
    },
    ...describeSocialRoutes(SIGNED_IN_REPLY),
  },
};
