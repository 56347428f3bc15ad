import type { App } from '../../app.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import {
  cappedParameter,
  created,
  done,
  naming,
  ok,
  parameter,
  route,
  type Access,
  type Route,
  type RouteContext,
} from '../../http/routes/route.js';
import { arrayOf, object, openObject, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { withHooks } from '../access/describe-access.js';
import { giveCaller, SECRET_KEY, type ByKey } from '../access/key-access.js';
import { deleteUser } from './accounts/delete-user.js';
import { ACCOUNT, NEW_ACCOUNT, USER_CHANGES } from './accounts/present-user.js';
import { disableUser, enableUser } from './accounts/change-user.js';
import { listUsersFrom, presentAccount } from './accounts/list-users.js';
import { changeRoles, ROLE_LIST } from './accounts/user-roles.js';
import { useMergeToken } from './codes/account-merge.js';
import { requestReset } from './factors/reset-factors.js';
import { updateProfile } from './profile/update-profile.js';
import { endSession } from './sessions/end-sessions.js';
import { clientOf } from './sessions/deliver-tokens.js';
import { signUp } from './sign-up.js';
import type { User } from './user.js';
import { requireUser } from './user-store.js';

const USERS_PART = 50;
const MAX_USERS_PART = 200;

interface OfUser extends ByKey {
  /** The one that the path names by its id or e-mail address. */
  user: User;
}

/** The secret key, with the user that the path names; 404 when there is none. */
const SERVER_OF_USER: Access<OfUser> = {
  ...SECRET_KEY,
  async give(app: App, ctx: RouteContext) {
    const given = giveCaller(app, ctx);
    return { ...given, user: await requireUser(app, given.project._id, ctx.params.user!) };
  },
};

const params = { user: naming('Id or e-mail address of the user', 'USER_NOT_FOUND') };

export const CREATE_USER = route('POST /api/userAuth/users', {
  id: 'createUser',
  summary: 'Create a user, with or without a password',
  description: 'Without a password, the user signs in with an email code or a provider, or resets the password.',
  access: withHooks(SECRET_KEY),
  rate: 'plain',
  openBody: NEW_ACCOUNT,
  example: { email: 'ada@example.com', emailVerified: true },
  answers: created(ACCOUNT, 'User created'),
  errors: {
    400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
    403: ['QUOTA_EXCEEDED'],
    409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE'],
    413: ['DOCUMENT_TOO_LARGE'],
    503: ['BUSY'],
  },
  async handle({ app, ctx, project, body }) {
    const more = { gone: clientSignal(ctx), needsPassword: false, client: clientOf(ctx) };
    return presentAccount(await signUp(app, project, body, 'project', more));
  },
});

export const GET_USER = route('GET /api/userAuth/users/:user', {
  id: 'getUser',
  summary: 'Get a user',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  answers: ok(ACCOUNT, 'User'),
  handle: ({ user }) => presentAccount(user),
});

export const UPDATE_USER = route('PATCH /api/userAuth/users/:user', {
  id: 'updateUser',
  summary: 'Update a user',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  openBody: USER_CHANGES,
  example: { name: 'Ada Lovelace' },
  answers: ok(ACCOUNT, 'User updated'),
  errors: {
    400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
    403: ['QUOTA_EXCEEDED'],
    409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING', 'CHANGED_MEANWHILE'],
    413: ['DOCUMENT_TOO_LARGE'],
  },
  async handle({ app, ctx, project, user, body }) {
    const editor = { setter: 'project', ip: ctx.ip, session: null } as const;
    return presentAccount((await updateProfile(app, project, user, body, editor)).user);
  },
});

export const DELETE_USER = route('DELETE /api/userAuth/users/:user', {
  id: 'deleteUser',
  summary: 'Delete a user',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  answers: done('User deleted'),
  errors: { 409: ['DOCUMENT_REFERRED_TO'] },
  handle: ({ app, project, user }) => deleteUser(app, project, user),
});

export const DISABLE_USER = route('POST /api/userAuth/users/:user/disable', {
  id: 'disableUser',
  summary: 'Disable an account and end its sessions',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  answers: ok(ACCOUNT, 'User disabled'),
  async handle({ app, project, user }) {
    return presentAccount(await disableUser(app, project, user));
  },
});

export const ENABLE_USER = route('POST /api/userAuth/users/:user/enable', {
  id: 'enableUser',
  summary: 'Enable an account',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  answers: ok(ACCOUNT, 'User enabled'),
  async handle({ app, project, user }) {
    return presentAccount(await enableUser(app, project, user));
  },
});

export const END_SESSIONS = route('DELETE /api/userAuth/users/:user/sessions', {
  id: 'endSessions',
  summary: 'End all sessions of a user',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  answers: ok(object({ ended: WHOLE }), 'Sessions ended'),
  async handle({ app, project, user }) {
    return { ended: await endSession(app, project, user, 'all') };
  },
});

export const RESET_FACTORS = route('DELETE /api/userAuth/users/:user/mfa', {
  id: 'resetFactors',
  summary: 'Reset the MFA of a user, after the project’s delay',
  description:
    'For users who lost their device and recovery codes. The user is notified by email and can stop it by signing in with MFA. Sessions end when it takes effect.',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  answers: ok(ACCOUNT, 'The reset of the second factors is noted'),
  errors: { 409: ['TOTP_NOT_ENROLLED', 'CHANGED_MEANWHILE'], 503: ['HOOK_FAILED'] },
  async handle({ app, project, user }) {
    return presentAccount(await requestReset(app, project, user));
  },
});

export const SET_ROLES = route('PUT /api/userAuth/users/:user/roles', {
  id: 'setRoles',
  summary: 'Set the roles of a user',
  description: 'Users see them as `roles` of their profile and cannot change them.',
  access: SERVER_OF_USER,
  rate: 'plain',
  params,
  body: object({ roles: ROLE_LIST }),
  example: { roles: ['editor'] },
  answers: ok(ACCOUNT, 'Roles set'),
  errors: { 409: ['ROLES_FIELD', 'CHANGED_MEANWHILE'] },
  async handle({ app, project, user, body: { roles } }) {
    return presentAccount(await changeRoles(app, project, user, () => roles));
  },
});

/** Users of a project under its secret key: what operators do, for a server of the project (accounts.md 8). */
export const ADMINISTRATION_ROUTES: readonly Route[] = [
  route('GET /api/userAuth/users', {
    id: 'listUsers',
    summary: 'List users, newest first',
    description: 'Send `nextCursor` as `cursor` to continue; null at the end.',
    access: SECRET_KEY,
    rate: 'plain',
    query: {
      email: parameter('Only addresses that start with this', TEXT),
      q: parameter(
        'Only users with this id, or with this text in the address or another field',
        text({ maxLength: 200 }),
      ),
      role: parameter('Only users with this role', text({ maxLength: 64 })),
      cursor: parameter('Where to continue', text({ maxLength: 64 })),
      limit: cappedParameter('Users of a part', USERS_PART, MAX_USERS_PART),
    },
    answers: ok(object({ items: arrayOf(ACCOUNT), nextCursor: orNull(TEXT) }), 'Users'),
    errors: { 400: ['INVALID_QUERY', 'QUERY_TIMEOUT'] },
    async handle({ app, project, query }) {
      const { users, nextCursor } = await listUsersFrom(app, project, query);
      return { items: users.map(presentAccount), nextCursor };
    },
  }),
  CREATE_USER,
  route('POST /api/userAuth/merges', {
    id: 'useMergeToken',
    bodySize: 'small',
    summary: 'Find the account that an anonymous user claims',
    description:
      'Takes the `mergeToken` of `EMAIL_TAKEN`, which an anonymous user gets after confirming the address of an existing account. It works once, within five minutes. Your server moves the documents.',
    access: SECRET_KEY,
    rate: 'plain',
    body: openObject({ mergeToken: text({ minLength: 1, maxLength: 100 }) }),
    example: { mergeToken: 'from EMAIL_TAKEN' },
    answers: ok(
      object({ anonymous: ACCOUNT, user: ACCOUNT }),
      'The anonymous user, and the account of the same person',
    ),
    errors: { 400: ['VALIDATION_FAILED', 'MERGE_TOKEN_INVALID'] },
    async handle({ app, ctx, project, body: { mergeToken } }) {
      ctx.set('Cache-Control', 'no-store');
      const { anonymous, user } = await useMergeToken(app, project, mergeToken);
      return { anonymous: presentAccount(anonymous), user: presentAccount(user) };
    },
  }),
  GET_USER,
  UPDATE_USER,
  DELETE_USER,
  DISABLE_USER,
  ENABLE_USER,
  END_SESSIONS,
  RESET_FACTORS,
  SET_ROLES,
];
