import {
  type Access,
  cappedParameter,
  created,
  done,
  listOf,
  naming,
  ok,
  PAGE_PARAMETER,
  pageOf,
  parameter,
  route,
  type RouteList,
  wholeList,
} from '../../http/routes/route.js';
import { object, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import {
  operatedProject,
  operatorOf,
  requireProven,
  type ActingOperator,
  type Recording,
} from '../access/require-operator.js';
import { requireCollection } from '../collections/collection-store.js';
import { USERS } from '../collections/users-collection.js';
import type { Project } from '../projects/project.js';
import { deleteUser } from '../users/accounts/delete-user.js';
import { ACCOUNT, IDENTITY, NEW_PASSWORD, NEW_USER, SESSION, USER_CHANGES } from '../users/accounts/describe-user.js';
import { disableUser, enableUser } from '../users/accounts/disable-user.js';
import { listIdentities, presentIdentity } from '../users/accounts/linked-identity.js';
import { listUsers, presentAccount } from '../users/accounts/list-users.js';
import { setPassword } from '../users/accounts/set-password.js';
import { changesTrust } from '../users/accounts/new-user.js';
import { changeRoles, ROLE_LIST } from '../users/accounts/user-roles.js';
import { requestReset } from '../users/factors/request-reset.js';
import { updateProfile } from '../users/profile/update-profile.js';
import { endSession, listSessions, presentSession } from '../users/sessions/list-sessions.js';
import { signUp } from '../users/sign-up.js';
import type { User } from '../users/user.js';
import { requireUser } from '../users/user-store.js';

const USERS_PAGE = 50;
const MAX_USERS_PAGE = 200;

interface OfUser {
  operator: ActingOperator;
  project: Project;
  /** The one that the path names by its id or e-mail address. */
  user: User;
}

/** Callers who may ask for a user's project, with the user that the path names; 404 when there is none. */
const withUser = (access: Access): Access<OfUser> => ({
  ...access,
  async give(app, ctx) {
    const project = await operatedProject(app, ctx);
    return { operator: operatorOf(ctx), project, user: await requireUser(app, project._id, ctx.params.user!) };
  },
});
const USER_OPERATOR = withUser(PROJECT_OPERATOR);
const userOwner = (action: string, recording: Recording = {}): Access<OfUser> =>
  withUser(projectOwner(action, recording));

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
      id: 'listUsers',
      command: 'user list',
      summary: 'List users, the newest first',
      access: PROJECT_OPERATOR,
      query: {
        page: PAGE_PARAMETER,
        limit: cappedParameter('Users of a page', USERS_PAGE, MAX_USERS_PAGE),
        email: parameter('Only addresses that begin with this', TEXT),
        q: parameter(
          'Only users of this id, or with this in the address or in another of their texts, in either case',
          text({ maxLength: 200 }),
        ),
      },
      answers: ok(pageOf(ACCOUNT), 'Users'),
      refuses: { 400: ['INVALID_QUERY', 'QUERY_TIMEOUT'] },
      async handle({ app, project, query: { page, limit, email, q } }) {
        const { users, total } = await listUsers(app, project, { email, q, limit, skip: (page - 1) * limit });
        return { items: users.map(presentAccount), total, page, limit };
      },
    }),
    route('POST /api/projects/:projectId/users', {
      id: 'createUser',
      summary: 'Create a user',
      access: projectOwner('user create', { asksPassword: true }),
      openBody: NEW_USER,
      example: { email: 'ada@example.com', password: 'correct horse battery' },
      answers: created(ACCOUNT, 'User created'),
      refuses: {
        400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
        403: ['QUOTA_EXCEEDED'],
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE'],
        413: ['DOCUMENT_TOO_LARGE'],
        503: ['BUSY'],
      },
      async handle({ app, project, body }) {
        return presentAccount(await signUp(app, project, body, 'project'));
      },
    }),
    route('GET /api/projects/:projectId/users/:user', {
      id: 'getUser',
      summary: 'Get a user',
      access: USER_OPERATOR,
      answers: ok(ACCOUNT, 'User'),
      handle: ({ user }) => presentAccount(user),
    }),
    route('PATCH /api/projects/:projectId/users/:user', {
      id: 'updateUser',
      summary: 'Change fields of a user',
      access: userOwner('user update', { asksPassword: 'to open' }),
      openBody: USER_CHANGES,
      example: { name: 'Ada Lovelace' },
      answers: ok(ACCOUNT, 'User updated'),
      refuses: {
        400: ['VALIDATION_FAILED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
        403: ['QUOTA_EXCEEDED'],
        409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING'],
        413: ['DOCUMENT_TOO_LARGE'],
      },
      async handle({ app, ctx, project, user, body }) {
        const { fields } = await requireCollection(app, project._id, USERS);
        if (changesTrust(fields, body)) await requireProven(app, ctx);
        const editor = { setter: 'project', ip: ctx.ip, session: null } as const;
        return presentAccount((await updateProfile(app, project, user, body, editor)).user);
      },
    }),
    route('DELETE /api/projects/:projectId/users/:user', {
      id: 'deleteUser',
      summary: 'Delete a user',
      access: userOwner('user delete'),
      answers: ok(object({ id: TEXT }), 'User deleted'),
      refuses: { 409: ['DOCUMENT_REFERRED_TO'] },
      async handle({ app, project, user }) {
        await deleteUser(app, project, user);
        return { id: user._id.toHexString() };
      },
    }),
    route('POST /api/projects/:projectId/users/:user/set-password', {
      id: 'setUserPassword',
      summary: 'Set a user’s password',
      access: userOwner('user set-password', { asksPassword: true }),
      body: object({ password: NEW_PASSWORD }),
      example: { password: 'correct horse battery' },
      answers: done('Password set; every session has ended'),
      refuses: { 503: ['BUSY'] },
      handle: ({ app, project, user, body }) => setPassword(app, project, user, body.password),
    }),
    route('POST /api/projects/:projectId/users/:user/disable', {
      id: 'disableUser',
      summary: 'Disable an account and end its sessions',
      access: userOwner('user disable'),
      answers: ok(ACCOUNT, 'User disabled'),
      async handle({ app, project, user }) {
        return presentAccount(await disableUser(app, project, user));
      },
    }),
    route('POST /api/projects/:projectId/users/:user/enable', {
      id: 'enableUser',
      summary: 'Enable an account again',
      access: userOwner('user update', { asksPassword: true }),
      command: 'user update --enable',
      answers: ok(ACCOUNT, 'User enabled'),
      async handle({ app, project, user }) {
        return presentAccount(await enableUser(app, project, user));
      },
    }),
    route('PUT /api/projects/:projectId/users/:user/roles', {
      id: 'setUserRoles',
      summary: 'Set the roles of a user',
      access: userOwner('user update', { asksPassword: true }),
      body: object({ roles: ROLE_LIST }),
      example: { roles: ['editor'] },
      answers: ok(ACCOUNT, 'Roles set'),
      refuses: { 409: ['ROLES_FIELD', 'CHANGED_MEANWHILE'] },
      async handle({ app, project, user, body: { roles } }) {
        return presentAccount(await changeRoles(app, project, user, () => roles));
      },
    }),
    route('DELETE /api/projects/:projectId/users/:user/mfa', {
      id: 'resetUserFactors',
      summary: 'Take the second factors off an account, after the project’s delay',
      description: 'The address is told by mail; sessions end when it takes effect.',
      access: userOwner('user update', { asksPassword: true }),
      command: 'user update --reset-mfa',
      answers: ok(ACCOUNT, 'The reset of the second factors is noted'),
      refuses: { 409: ['TOTP_NOT_ENROLLED', 'CHANGED_MEANWHILE'] },
      async handle({ app, project, user }) {
        return presentAccount(await requestReset(app, project, user));
      },
    }),
    route('GET /api/projects/:projectId/users/:user/identities', {
      id: 'listUserIdentities',
      command: 'user show',
      summary: 'List the identities at sign-in providers that open the account',
      description: 'The oldest first.',
      access: USER_OPERATOR,
      answers: ok(listOf(IDENTITY), 'Identities'),
      async handle({ app, project, user }) {
        return wholeList((await listIdentities(app, project, user)).map(presentIdentity));
      },
    }),
    route('GET /api/projects/:projectId/users/:user/sessions', {
      id: 'listSessions',
      command: 'user sessions',
      summary: 'List a user’s live sessions',
      access: USER_OPERATOR,
      answers: ok(listOf(SESSION), 'Sessions'),
      async handle({ app, project, user }) {
        return wholeList((await listSessions(app, project, user)).map(presentSession));
      },
    }),
    route('DELETE /api/projects/:projectId/users/:user/sessions', {
      id: 'endSessions',
      summary: 'End all sessions of a user',
      access: userOwner('user sessions'),
      answers: ENDED,
      async handle({ app, project, user }) {
        return { ended: await endSession(app, project, user, 'all') };
      },
    }),
    route('DELETE /api/projects/:projectId/users/:user/sessions/:session', {
      id: 'endSession',
      summary: 'End one session of a user',
      access: userOwner('user sessions'),
      answers: ENDED,
      async handle({ app, project, user, params }) {
        return { ended: await endSession(app, project, user, params.session) };
      },
    }),
  ],
};
