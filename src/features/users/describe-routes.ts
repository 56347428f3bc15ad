import {
  DONE,
  done,
  jsonAnswer,
  jsonBody,
  naming,
  object,
  ok,
  openObject,
  parameter,
  TEXT,
  type Body,
  type GroupDescription,
  type RouteDescription,
  type Schema,
} from '../../http/route-description.js';
import { ANY_KEY, SIGNED_IN } from '../access/describe-access.js';
import { EMAIL, NEW_USER, PASSWORD, PUBLIC_USER, USER, USER_CHANGES } from './describe-user.js';
import { describeSocialRoutes } from './describe-social-routes.js';
import { REFRESH_MODE, TOKEN_FIELDS, TOKEN_HEADERS } from './describe-tokens.js';

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
  description: 'Only the given fields change. A new address has to be confirmed again.',
  access: SIGNED_IN,
  body: jsonBody(USER_CHANGES, { name: 'Ada Lovelace' }),
  answers: ok('The user', USER),
  refuses: {
    400: ['VALIDATION_FAILED'],
    409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
    413: ['DOCUMENT_TOO_LARGE'],
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
      description: 'Each refresh token works once; presenting one again ends its session.',
      access: ANY_KEY,
      headers: { ...REFRESH_TOKEN, ...REFRESH_MODE },
      answers: {
        200: jsonAnswer('New tokens', object({ success: { const: true }, ...TOKEN_FIELDS }), TOKEN_HEADERS),
      },
      refuses: { 401: ['REFRESH_INVALID', 'REFRESH_REUSED'] },
    },
    'POST /logout': {
      id: 'logOut',
      summary: 'End the session of the presented refresh token',
      access: ANY_KEY,
      headers: REFRESH_TOKEN,
      answers: done('Signed out, also when nothing was presented'),
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
      access: ANY_KEY,
      body: texts({ email: EMAIL, otp: OTP }, { email: 'ada@example.com', otp: '123456' }),
      answers: done('Confirmed'),
      refuses: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'] },
    },
    'POST /resend-verification-otp': {
      id: 'resendVerification',
      summary: 'Have the code mailed again',
      access: ANY_KEY,
      body: texts({ email: EMAIL }, { email: 'ada@example.com' }),
      answers: { 200: CODE_REQUESTED },
      refuses: { 400: ['VALIDATION_FAILED'] },
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
