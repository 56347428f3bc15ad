import type { Context } from 'koa';
import type { App } from '../../app.js';
import { requireObjectBody } from '../../http/requests/read-body.js';
import { readText, readWhole } from '../../http/routes/read-parameter.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { compileReader } from '../../platform/schema/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import type { Project } from '../projects/project.js';
import { deleteUser } from '../users/accounts/delete-user.js';
import { disableUser, enableUser } from '../users/accounts/disable-user.js';
import { listIdentities, presentIdentity } from '../users/accounts/linked-identity.js';
import { endSession, listSessions, presentSession } from '../users/sessions/list-sessions.js';
import { listUsers, presentAccount } from '../users/accounts/list-users.js';
import { setPassword } from '../users/accounts/set-password.js';
import { signUp } from '../users/sign-up.js';
import { updateProfile } from '../users/profile/update-profile.js';
import type { User } from '../users/user.js';
import { requireUser } from '../users/user-store.js';

const PREFIX = '/api/projects/:projectId/users';
const USERS_PAGE = 50;
const MAX_USERS_PAGE = 200;
const MAX_PAGE = 100_000;

export const readNewPassword = compileReader<{ password: string }>({
  type: 'object',
  required: ['password'],
  additionalProperties: false,
  properties: { password: { type: 'string' } },
});

/** End users of a project, for operators: they may set what users may not. `:user` is an id or an e-mail address. */
export function accountRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const operator = requireOperator(app);
  const owner = (action: string) => requireOwner(app, action);

  router.get('/', operator, async (ctx) => {
    const project = await operatedProject(app, ctx);
    const page = readWhole(ctx.query, 'page', 1, MAX_PAGE);
    const limit = readWhole(ctx.query, 'limit', USERS_PAGE, MAX_USERS_PAGE);
    const email = readText(ctx.query, 'email');
    const { users, total } = await listUsers(app, project, { email, limit, skip: (page - 1) * limit });
    ctx.body = { success: true, data: { items: users.map(presentAccount), total, page, limit }, message: 'Users' };
  });

  router.post('/', owner('user create'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const user = await signUp(app, project, requireObjectBody(ctx), 'project');
    ctx.status = 201;
    ctx.body = { success: true, data: presentAccount(user), message: 'User created' };
  });

  router.get('/:user', operator, async (ctx) => {
    const { user } = await requireNamed(app, ctx);
    ctx.body = { success: true, data: presentAccount(user), message: 'User' };
  });

  router.patch('/:user', owner('user update'), async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    const editor = { setter: 'project', ip: ctx.ip, session: null } as const;
    const { user: updated } = await updateProfile(app, project, user, requireObjectBody(ctx), editor);
    ctx.body = { success: true, data: presentAccount(updated), message: 'User updated' };
  });

  router.delete('/:user', owner('user delete'), async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    await deleteUser(app, project, user);
    ctx.body = { success: true, data: { id: user._id.toHexString() }, message: 'User deleted' };
  });

  router.post('/:user/set-password', owner('user set-password'), async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    await setPassword(app, project, user, readNewPassword(ctx.request.body).password);
    ctx.body = { success: true, message: 'Password set; every session has ended' };
  });

  router.post('/:user/disable', owner('user disable'), async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    ctx.body = { success: true, data: presentAccount(await disableUser(app, project, user)), message: 'User disabled' };
  });

  router.post('/:user/enable', owner('user enable'), async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    ctx.body = { success: true, data: presentAccount(await enableUser(app, project, user)), message: 'User enabled' };
  });

  router.get('/:user/sessions', operator, async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    const items = (await listSessions(app, project, user)).map(presentSession);
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Sessions' };
  });

  router.get('/:user/identities', operator, async (ctx) => {
    const { project, user } = await requireNamed(app, ctx);
    const items = (await listIdentities(app, project, user)).map(presentIdentity);
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Identities' };
  });

  const end = async (ctx: Context, which: string): Promise<void> => {
    const { project, user } = await requireNamed(app, ctx);
    const ended = await endSession(app, project, user, which);
    ctx.body = { success: true, data: { ended }, message: 'Sessions ended' };
  };
  router.delete('/:user/sessions', owner('user sessions'), (ctx) => end(ctx, 'all'));
  router.delete('/:user/sessions/:session', owner('user sessions'), (ctx) => end(ctx, ctx.params.session!));

  return { prefix: PREFIX, router };
}

async function requireNamed(app: App, ctx: Context): Promise<{ project: Project; user: User }> {
  const project = await operatedProject(app, ctx);
  const { user: named = '' } = (ctx as Context & { params: Record<string, string> }).params;
  return { project, user: await requireUser(app, project._id, named) };
}
