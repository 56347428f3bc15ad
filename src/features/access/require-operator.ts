import type { Context } from 'koa';
import type { App } from '../../app.js';
import { forbidden, missing, unauthenticated } from '../../errors.js';
import { readFlagParameter } from '../../http/routes/read-parameter.js';
import { requestIdOf } from '../../http/requests/request-id.js';
import { findObjectId, isSameSecret } from '../../platform/ids.js';
import { withAuditEntry } from '../audit/audit-log.js';
import type { Project } from '../projects/project.js';
import { findProject } from '../projects/project-store.js';
import {
  findSignedIn,
  isIdle,
  isOperatorTokenForm,
  noteUse,
  operatorSessionStore,
  type OperatorRole,
  type SignedInOperator,
} from './operator.js';
import { invalidToken, readOperatorToken, type PresentedOperatorToken } from './operator-token.js';

/** The operator behind a request to the operators' API. */
export interface ActingOperator {
  /** The name in the audit log: the address, or `BSVC_ADMIN_TOKEN`. */
  name: string;
  role: OperatorRole;
  /** Ids of the operator’s projects; null means all. */
  projects: ReadonlySet<string> | null;
  /** Null for `BSVC_ADMIN_TOKEN`, which has no operator. */
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
  return withAuditEntry(app, { ...actedBy(ctx), action, input: describeRequest(ctx, withoutBody) }, run);
}

/** Who acts, and by which request, for the audit log. */
export function actedBy(ctx: Pick<Context, 'state'>): { actor: string; requestId: string } {
  return { actor: operatorOf(ctx).name, requestId: requestIdOf(ctx) };
}

export interface Recording {
  /** The query parameter that makes a request one that only looks: it is not recorded. */
  looks?: string;
  /** The body is not written down: it holds a project's data. */
  withoutBody?: boolean;
  /**
   * At the console the operator has to have given the password again, a short time ago; of some bodies only, or where
   * the handler finds that it grants more access (requireProven).
   */
  asksPassword?: boolean | 'to open' | ((body: Record<string, unknown>) => boolean);
}

/** The operator that a guard settled. */
export function operatorOf(ctx: Pick<Context, 'state'>): ActingOperator {
  return ctx.state.operator as ActingOperator;
}

/** The project that the path names by its id; 404 for any other, one that the operator does not see among them. */
export function operatedProject(app: App, ctx: Context): Promise<Project> {
  return requireSeenProject(app, operatorOf(ctx), inPath(ctx));
}

/** The project of an id; 404 for any other, one that the operator does not see among them. */
export async function requireSeenProject(app: App, operator: ActingOperator, projectId: string): Promise<Project> {
  const project = await findProject(app, requireSeenId(operator, projectId));
  if (!project) throw projectNotFound();
  return project;
}

/** The id in the path, if the operator sees that project in case it exists; 404 otherwise. */
export function requireOperatedId(ctx: Context): string {
  return requireSeenId(operatorOf(ctx), inPath(ctx));
}

function inPath(ctx: Context): string {
  return (ctx as Context & { params: Record<string, string> }).params.projectId ?? '';
}

function requireSeenId({ projects }: ActingOperator, projectId: string): string {
  const id = findObjectId(projectId)?.toHexString();
  if (!id || (projects && !projects.has(id))) throw projectNotFound();
  return id;
}

/**
 * Settles who the operator of a request is; 401 AUTH_REQUIRED, TOKEN_INVALID or TOKEN_EXPIRED, 403 FOREIGN_REQUEST for
 * the console's cookie on a request that is not the console's.
 */
export async function authenticateOperator(app: App, ctx: Context): Promise<void> {
  ctx.state.operator = await findOperator(app, readOperatorToken(app, ctx));
  ctx.set('Cache-Control', 'no-store');
}

async function findOperator(app: App, { token, by }: PresentedOperatorToken): Promise<ActingOperator> {
  if (by === 'header' && app.config.adminToken && isSameSecret(token, app.config.adminToken)) {
    return { name: 'BSVC_ADMIN_TOKEN', role: 'owner', projects: null, signedIn: null };
  }
  const signedIn = isOperatorTokenForm(token) ? await findSignedIn(app, token) : null;
  // Another page could plant a token of its own as a cookie: one that was made for scripts is none of the console's.
  if (!signedIn || (by === 'cookie' && !signedIn.session.isConsole)) throw invalidToken();
  const { operator, session } = signedIn;
  const now = app.clock.now();
  if (session.expiresAt.getTime() <= now || isIdle(session, now)) {
    throw unauthenticated('TOKEN_EXPIRED', 'The operator’s token has expired: sign in again');
  }
  noteUse(app, session);
  const projects = operator.projects && new Set(operator.projects.map((id) => id.toHexString()));
  return { name: operator.email, role: operator.role, projects, signedIn };
}

/** 403 VIEWER_READS_ONLY for a viewer. */
export function requireOwnerRole(ctx: Context): void {
  if (operatorOf(ctx).role !== 'owner') {
    throw forbidden('VIEWER_READS_ONLY', 'Your role is viewer. Only owners can make changes');
  }
}

/** How long an operator may act that has given the password again. */
const CONFIRMED_MS = 5 * 60_000;

/** 403 PASSWORD_REQUIRED for a session of the console whose operator has not given the password again just now. */
export async function requireProven(app: App, ctx: Context): Promise<void> {
  const { signedIn } = operatorOf(ctx);
  if (!signedIn?.session.isConsole) return;
  // The copy that requests share may be older than the password.
  const session = await operatorSessionStore(app).findOne({ _id: signedIn.session._id }, app.db.confirmedReads);
  const confirmedAt = session?.confirmedAt;
  if (confirmedAt && Math.abs(app.clock.now() - confirmedAt.getTime()) < CONFIRMED_MS) return;
  throw forbidden(
    'PASSWORD_REQUIRED',
    'Confirm your password: POST it to /api/admin/me/confirm, then repeat the request',
  );
}

/** The request's target and content, for the audit log. */
function describeRequest(ctx: Context, withoutBody = false): Record<string, unknown> {
  const { projectId, ...named } = (ctx as Context & { params: Record<string, string> }).params;
  const body = (ctx.request as { body?: unknown }).body;
  const fields = !withoutBody && typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {};
  return { ...fields, ...named, ...(projectId !== undefined && { project: projectId }) };
}

const projectNotFound = (): Error => missing('PROJECT_NOT_FOUND', 'There is no project with this id');
