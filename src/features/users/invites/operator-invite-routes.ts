import { created, done, listOf, naming, ok, route, type RouteList, wholeList } from '../../../http/routes/route.js';
import { object, text } from '../../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../../access/operator-access.js';
import { EMAIL } from '../accounts/describe-user.js';
import { ROLE_LIST } from '../accounts/user-roles.js';
import { INVITE, listInvites, presentInvite, withdrawInvite } from './invite.js';
import { sendInvite } from './send-invite.js';

/** Invitations of a project, for operators: the same that the project's server sends (accounts.md 4). */
export const OPERATOR_INVITE_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/invites',
  tag: 'Project users',
  rate: 'operator',
  params: { invite: naming('Id of the invitation', 'INVITE_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/invites', {
      id: 'listProjectInvites',
      summary: 'List the open invitations',
      description: 'The newest first; at most 100.',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(INVITE), 'Invitations'),
      async handle({ app, project }) {
        return wholeList((await listInvites(app, project)).map(presentInvite));
      },
    }),
    route('POST /api/projects/:projectId/invites', {
      id: 'sendProjectInvite',
      summary: 'Invite an address by mail',
      description:
        'The mail (template `invite`) links to `redirect`, one of the project’s addresses (`signIn.redirects`), with `#invite=<token>`. Good for seven days, once, for a user whose confirmed address it is.',
      access: projectOwner('user invite', { asksPassword: ({ roles }) => Array.isArray(roles) && roles.length > 0 }),
      body: object({ email: EMAIL, redirect: text({ maxLength: 500 }), 'roles?': ROLE_LIST }, 'ProjectInvite'),
      example: { email: 'grace@example.com', redirect: 'https://shop.example/join', roles: ['editor'] },
      answers: created(INVITE, 'Invitation mailed'),
      refuses: {
        400: ['INVALID_EMAIL', 'REDIRECT_NOT_ALLOWED'],
        403: ['QUOTA_EXCEEDED'],
        404: ['COLLECTION_NOT_FOUND'],
        409: ['ROLES_FIELD', 'TOO_MANY_INVITES'],
        429: ['INVITE_LIMIT'],
      },
      async handle({ app, project, body }) {
        return presentInvite(await sendInvite(app, project, body));
      },
    }),
    route('DELETE /api/projects/:projectId/invites/:invite', {
      id: 'withdrawProjectInvite',
      summary: 'Withdraw an invitation',
      access: projectOwner('user invite'),
      answers: done('Invitation withdrawn'),
      handle: ({ app, project, params: { invite } }) => withdrawInvite(app, project, invite),
    }),
  ],
};
