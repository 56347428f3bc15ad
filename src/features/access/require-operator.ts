import type { Context } from 'koa';
import type { App } from '../../app.js';
import { forbidden, missing, unauthenticated } from '../../errors.js';
import { readFlagParameter } from '../../http/routes/read-parameter.js';
import { findObjectId } from '../../platform/ids.js';
import { isSameSecret } from '../../platform/secrets/is-same-secret.js';
import { recordAct } from '../audit/audit-log.js';
import type { Project } from '../projects/project.js';
import { findProject } from '../projects/project-store.js';
import { findSignedIn, isOperatorTokenForm, type OperatorRole, type SignedInOperator } from './operator.js';

/** The operator behind a request to the operators' API. */
export interface ActingOperator {
  /** The name in the audit log: the address, or `BSVC_ADMIN_TOKEN`. */
  name: string;
  role: OperatorRole;
  /** Ids of the projects it sees; null = all. */
  projects: ReadonlySet<string> | null;
  /** Null for `BSVC_ADMIN_TOKEN`, which is nobody's. */
  signedIn: SignedInOperator | null;
}

/** Runs the rest of a request as an entry of the audit log, unless it only looks. */
export function recordRequest<T>(
  app: App,
  ctx: Context,
  action: string,
  { looks, withoutBody }: Recording,
  run: () => Promise<T>,
): Promise<T> {
  if (looks !== undefined && readFlagParameter(ctx.query, looks, false)) return run();
  return recordAct(app, { actor: operatorOf(ctx).name, action, input: describeRequest(ctx, withoutBody) }, run);
}

export interface Recording {
  /** The query parameter that makes a request one that only looks: it is not recorded. */
  looks?: string;
  /** The body is not written down: it holds a project's data. */
  withoutBody?: boolean;
}

/** The operator that a guard settled. */
export function operatorOf(ctx: Pick<Context, 'state'>): ActingOperator {
  return ctx.state.operator as ActingOperator;
}

/** The project that the path names by its id; 404 for any other, one that the operator does not see among them. */
export async function operatedProject(app: App, ctx: Context): Promise<Project> {
  const project = await findProject(app, requireOperatedId(ctx));
  if (!project) throw projectNotFound();
  return project;
}

/** The id in the path, if the operator sees that project in case it exists; 404 otherwise. */
export function requireOperatedId(ctx: Context): string {
  const { projectId = '' } = (ctx as Context & { params: Record<string, string> }).params;
  const id = findObjectId(projectId)?.toHexString();
  const { projects } = operatorOf(ctx);
  if (!id || (projects && !projects.has(id))) throw projectNotFound();
  return id;
}

/** Settles who the operator of a request is; 401 AUTH_REQUIRED, TOKEN_INVALID or TOKEN_EXPIRED. */
export async function settleOperator(app: App, ctx: Context): Promise<void> {
  const header = ctx.get('authorization');
  if (header === '')
    throw unauthenticated('AUTH_REQUIRED', 'This needs an operator: send Authorization: Bearer <token>');
  const token = /^Bearer ([^\s]+)$/i.exec(header)?.[1];
  if (!token) throw invalidToken();
  ctx.state.operator = await findOperator(app, token);
  ctx.set('Cache-Control', 'no-store');
}

async function findOperator(app: App, token: string): Promise<ActingOperator> {
  if (app.config.adminToken && isSameSecret(token, app.config.adminToken))
    return { name: 'BSVC_ADMIN_TOKEN', role: 'owner', projects: null, signedIn: null };
  const signedIn = isOperatorTokenForm(token) ? await findSignedIn(app, token) : null;
  if (!signedIn) throw invalidToken();
  const { operator, session } = signedIn;
  if (session.expiresAt.getTime() <= app.clock.now())
    throw unauthenticated('TOKEN_EXPIRED', 'The operator’s token has expired: sign in again');
  const projects = operator.projects && new Set(operator.projects.map((id) => id.toHexString()));
  return { name: operator.email, role: operator.role, projects, signedIn };
}

/** 403 VIEWER_READS_ONLY for a viewer. */
export function requireOwnerRole(ctx: Context): void {
  if (operatorOf(ctx).role !== 'owner')
    throw forbidden('VIEWER_READS_ONLY', 'Your role is viewer: only an owner may change something');
}

/** The request's target and content, for the audit log. */
function describeRequest(ctx: Context, withoutBody = false): Record<string, unknown> {
  const { projectId, ...named } = (ctx as Context & { params: Record<string, string> }).params;
  const body = (ctx.request as { body?: unknown }).body;
  const fields = !withoutBody && typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {};
  return { ...fields, ...named, ...(projectId !== undefined && { project: projectId }) };
}

const invalidToken = (): Error => unauthenticated('TOKEN_INVALID', 'The operator’s token is not valid');

const projectNotFound = (): Error => missing('PROJECT_NOT_FOUND', 'There is no project with this id');
