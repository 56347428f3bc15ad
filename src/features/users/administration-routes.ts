import type { App } from '../../app.js';
import { naming, ok, route, type Access, type Route, type RouteContext } from '../../http/routes/route.js';
import { object } from '../../platform/schema/schema.js';
import { giveCaller, SECRET_KEY, type ByKey } from '../access/key-access.js';
import { ACCOUNT } from './accounts/describe-user.js';
import { presentAccount } from './accounts/list-users.js';
import { changeRoles, ROLE_LIST } from './accounts/user-roles.js';
import type { User } from './user.js';
import { requireUser } from './user-store.js';

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

/** Users of a project under its secret key: what operators do, for a server of the project (accounts.md 8). */
export const ADMINISTRATION_ROUTES: readonly Route[] = [
  route('PUT /api/userAuth/users/:user/roles', {
    id: 'setRoles',
    summary: 'Set the roles of a user',
    description: 'The user reads them as `roles` of its own profile and cannot set them.',
    access: SERVER_OF_USER,
    rate: 'plain',
    params,
    body: object({ roles: ROLE_LIST }),
    example: { roles: ['editor'] },
    answers: ok(ACCOUNT, 'Roles set'),
    refuses: { 409: ['ROLES_FIELD', 'CHANGED_MEANWHILE'] },
    async handle({ app, project, user, body: { roles } }) {
      return presentAccount(await changeRoles(app, project, user, () => roles));
    },
  }),
];
