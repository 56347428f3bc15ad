import { withHooks } from '../access/describe-access.js';
import {
  cappedParameter,
  done,
  listOf,
  mountedAt,
  naming,
  ok,
  PAGE_PARAMETER,
  pageOf,
  parameter,
  route,
  wholeList,
  type Access,
  type RouteList,
} from '../../http/routes/route.js';
import { object, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner, type InProject } from '../access/operator-access.js';
import { requireProven, type Recording } from '../access/require-operator.js';
import { requireCollection } from '../collections/collection-store.js';
import { USERS } from '../collections/users-collection.js';
import { ACCOUNT, IDENTITY, NEW_PASSWORD, SESSION } from '../users/accounts/present-user.js';
import { listIdentities, presentIdentity } from '../users/accounts/sign-in-methods.js';
import { listUsers, presentAccount } from '../users/accounts/list-users.js';
import { changesTrust } from '../users/accounts/new-user.js';
import { setPassword } from '../users/accounts/password.js';
import {
  CREATE_USER,
  DELETE_USER,
  DISABLE_USER,
  ENABLE_USER,
  END_SESSIONS,
  GET_USER,
  RESET_FACTORS,
  SET_ROLES,
  UPDATE_USER,
} from '../users/administration-routes.js';
import { endSession, listSessions, presentSession } from '../users/sessions/end-sessions.js';
import type { User } from '../users/user.js';
import { requireUser } from '../users/user-store.js';
import { LIST_INVITES, SEND_INVITE, WITHDRAW_INVITE } from '../users/invite-routes.js';

const USERS_PAGE = 50;
const MAX_USERS_PAGE = 200;

interface OfUser extends InProject {
  /** The one that the path names by its id or e-mail address. */
  user: User;
}

/** Callers who may ask for a user's project, with the user that the path names; 404 when there is none. */
const withUser = (access: Access<InProject>): Access<OfUser> => ({
  ...access,
  async give(app, ctx) {
    const given = await access.give!(app, ctx);
    return { ...given, user: await requireUser(app, given.project._id, ctx.params.user!) };
  },
});
const USER_OPERATOR = withUser(PROJECT_OPERATOR);
const userOwner = (action: string, recording: Recording = {}): Access<OfUser> =>
  withUser(projectOwner(action, recording));

/** The password is asked for again where the change is of what a user is trusted for. */
const UPDATES_USER: Access<OfUser> = {
  ...userOwner('user update', { asksPassword: 'to open' }),
  async give(app, ctx) {
    const given = await USER_OPERATOR.give!(app, ctx);
    const { fields } = await requireCollection(app, given.project._id, USERS);
    const { body } = ctx.request as { body?: Record<string, unknown> };
    if (changesTrust(fields, body ?? {})) await requireProven(app, ctx);
    return given;
  },
};

const ENDED = ok(object({ ended: WHOLE }), 'Sessions ended');

export const PROJECT_USER_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/users',
  tag: 'Project users',
  rate: 'operator',
  about: 'The end users of a project, for operators, who may set what users may not.',
  params: {
    user: naming('Id or e-mail address of the user', 'USER_NOT_FOUND'),
    session: naming('Id of the session', 'SESSION_NOT_FOUND'),
  },
  routes: [
    route('GET /api/projects/:projectId/users', {
      id: 'listUsersOfProject',
      command: 'user list',
      summary: 'List users, newest first',
      access: PROJECT_OPERATOR,
      query: {
        page: PAGE_PARAMETER,
        limit: cappedParameter('Users of a page', USERS_PAGE, MAX_USERS_PAGE),
        email: parameter('Only addresses that start with this', TEXT),
        q: parameter(
          'Only users with this id, or with this text in the address or another field, case-insensitive',
          text({ maxLength: 200 }),
        ),
      },
      answers: ok(pageOf(ACCOUNT), 'Users'),
      errors: { 400: ['INVALID_QUERY', 'QUERY_TIMEOUT'] },
      async handle({ app, project, query: { page, limit, email, q } }) {
        const { users, total } = await listUsers(app, project, { email, q, limit, skip: (page - 1) * limit });
        return { items: users.map(presentAccount), total, page, limit };
      },
    }),
    mountedAt(
      'POST /api/projects/:projectId/users',
      CREATE_USER,
      withHooks(projectOwner('user create', { asksPassword: true })),
    ),
    mountedAt('GET /api/projects/:projectId/users/:user', GET_USER, USER_OPERATOR),
    mountedAt('PATCH /api/projects/:projectId/users/:user', UPDATE_USER, UPDATES_USER),
    mountedAt('DELETE /api/projects/:projectId/users/:user', DELETE_USER, userOwner('user delete')),
    route('POST /api/projects/:projectId/users/:user/set-password', {
      id: 'setUserPassword',
      summary: 'Set a user’s password',
      access: userOwner('user update', { asksPassword: true }),
      command: 'user update --replace-password',
      body: object({ password: NEW_PASSWORD }),
      example: { password: 'correct horse battery' },
      answers: done('Password set; every session has ended'),
      errors: { 503: ['BUSY'] },
      handle: ({ app, project, user, body }) => setPassword(app, project, user, body.password),
    }),
    mountedAt('POST /api/projects/:projectId/users/:user/disable', DISABLE_USER, userOwner('user update'), {
      command: 'user update --disable',
    }),
    mountedAt(
      'POST /api/projects/:projectId/users/:user/enable',
      ENABLE_USER,
      userOwner('user update', { asksPassword: true }),
      {
        command: 'user update --enable',
      },
    ),
    mountedAt(
      'PUT /api/projects/:projectId/users/:user/roles',
      SET_ROLES,
      userOwner('user update', { asksPassword: true }),
    ),
    mountedAt(
      'DELETE /api/projects/:projectId/users/:user/mfa',
      RESET_FACTORS,
      userOwner('user update', { asksPassword: true }),
      {
        command: 'user update --reset-mfa',
      },
    ),
    route('GET /api/projects/:projectId/users/:user/identities', {
      id: 'listUserIdentities',
      command: 'user list',
      summary: 'List linked identities of sign-in providers',
      description: 'Oldest first.',
      access: USER_OPERATOR,
      answers: ok(listOf(IDENTITY), 'Identities'),
      async handle({ app, project, user }) {
        return wholeList((await listIdentities(app, project, user)).map(presentIdentity));
      },
    }),
    route('GET /api/projects/:projectId/users/:user/sessions', {
      id: 'listSessionsOfUser',
      command: 'user list',
      summary: 'List a user’s sessions',
      access: USER_OPERATOR,
      answers: ok(listOf(SESSION), 'Sessions'),
      async handle({ app, project, user }) {
        return wholeList((await listSessions(app, project, user)).map(presentSession));
      },
    }),
    mountedAt('DELETE /api/projects/:projectId/users/:user/sessions', END_SESSIONS, userOwner('user update'), {
      command: 'user update --end-sessions all',
    }),
    route('DELETE /api/projects/:projectId/users/:user/sessions/:session', {
      id: 'endSessionOfUser',
      summary: 'End one session of a user',
      access: userOwner('user update'),
      answers: ENDED,
      async handle({ app, project, user, params }) {
        return { ended: await endSession(app, project, user, params.session) };
      },
    }),
  ],
};

const isTrusting = ({ roles, set }: Record<string, unknown>): boolean =>
  set !== undefined || (Array.isArray(roles) && roles.length > 0);

/** Invitations of a project, for operators: the same that the project's server sends (accounts.md 4). */
export const PROJECT_INVITE_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/invites',
  tag: 'Project users',
  rate: 'operator',
  params: { invite: naming('Id of the invitation', 'INVITE_NOT_FOUND') },
  routes: [
    mountedAt('GET /api/projects/:projectId/invites', LIST_INVITES, PROJECT_OPERATOR),
    mountedAt(
      'POST /api/projects/:projectId/invites',
      SEND_INVITE,
      projectOwner('user create', { asksPassword: isTrusting }),
      { command: 'user create --invite' },
    ),
    mountedAt('DELETE /api/projects/:projectId/invites/:invite', WITHDRAW_INVITE, projectOwner('user create')),
  ],
};
