import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import type { App } from '../../app.js';
import { missing, unauthenticated } from '../../errors.js';
import { findObjectId } from '../../platform/ids.js';
import type { Project } from '../projects/project.js';
import { findProject } from '../projects/project-store.js';

/** Guard of the operators' routes: 401 AUTH_REQUIRED without a bearer, TOKEN_INVALID for one that is not `BSVC_ADMIN_TOKEN`. */
export function requireOperator(app: App): Middleware {
  return (ctx, next) => {
    const header = ctx.get('authorization');
    if (header === '')
      throw unauthenticated('AUTH_REQUIRED', 'This needs an operator: send Authorization: Bearer <token>');
    const token = /^Bearer ([^\s]+)$/i.exec(header)?.[1];
    if (!token || !app.config.adminToken || !isSame(token, app.config.adminToken))
      throw unauthenticated('TOKEN_INVALID', 'The operator’s token is not valid');
    return next();
  };
}

/** The project that the path names by its id; 404 for any other. */
export async function operatedProject(app: App, ctx: Context): Promise<Project> {
  const { projectId = '' } = (ctx as Context & { params: Record<string, string> }).params;
  const project = findObjectId(projectId) && (await findProject(app, projectId));
  if (!project) throw missing('PROJECT_NOT_FOUND', 'There is no project with this id');
  return project;
}

/** Compares hashes, so that the time tells neither content nor length. */
function isSame(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
