import { mountedAt, naming, type RouteList } from '../../http/routes/route.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { LIST_INVITES, SEND_INVITE, WITHDRAW_INVITE } from '../users/invite-routes.js';

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
