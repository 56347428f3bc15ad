import { actingAs } from '../../platform/actor.js';
import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import type { Access, RouteContext } from '../../http/routes/route.js';
import type { Project, ApiKey } from '../projects/project.js';
import type { Caller } from './caller.js';
import { OPERATOR_DESCRIPTION, OWNER_DESCRIPTION, PROVEN_OWNER_DESCRIPTION } from './describe-access.js';
import {
  operatedProject,
  operatorOf,
  recordRequest,
  requireOwnerRole,
  requireProven,
  authenticateOperator,
  type ActingOperator,
  type Recording,
} from './require-operator.js';

interface ByOperator {
  /** On behalf of the operator. */
  app: App;
  operator: ActingOperator;
}

export interface InProject extends ByOperator {
  /** The one that the path names; 404 PROJECT_NOT_FOUND unless the operator sees it. */
  project: Project;
  /** With the rights of the project's secret key: whatever takes a key's caller can be mounted for operators. */
  caller: Caller;
}

/** An operator in any role. */
export const OPERATOR: Access<ByOperator> = {
  ...OPERATOR_DESCRIPTION,
  admit: authenticateOperator,
  give: giveOperator,
};

/** An operator in any role, in one of the projects that it sees. */
export const PROJECT_OPERATOR: Access<InProject> = { ...OPERATOR, give: inProject };

/**
 * An operator in the role `owner`; the request is recorded in the audit log under `action`, the words that the command
 * line has for it.
 */
export function owner(action: string, recording: Recording = {}): Access<ByOperator> {
  const { asksPassword = false } = recording;
  return {
    ...(asksPassword ? PROVEN_OWNER_DESCRIPTION : OWNER_DESCRIPTION),
    action,
    readsBody: true,
    admit: async (app, ctx) => {
      await authenticateOperator(app, ctx);
      requireOwnerRole(ctx);
      if (asksPassword === true) await requireProven(app, ctx);
    },
    around: (app, ctx, run) =>
      recordRequest(app, ctx, action, recording, async () => {
        if (typeof asksPassword === 'function' && asksPassword(bodyOf(ctx))) await requireProven(app, ctx);
        return run();
      }),
    give: giveOperator,
  };
}

/** `owner` within one of the projects that the operator sees. */
export function projectOwner(action: string, recording: Recording = {}): Access<InProject> {
  return { ...owner(action, recording), give: inProject };
}

/** For operators who see all projects alone: it shows all of them. 403 ALL_PROJECTS_REQUIRED. */
export function ofAllProjects(access: Access<ByOperator>): Access<ByOperator> {
  return {
    ...access,
    give(app, ctx) {
      if (operatorOf(ctx).projects) {
        throw forbidden('ALL_PROJECTS_REQUIRED', 'This needs an operator with access to all projects');
      }
      return giveOperator(app, ctx);
    },
  };
}

function bodyOf(ctx: RouteContext): Record<string, unknown> {
  const { body } = ctx.request as { body?: unknown };
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
}

function giveOperator(app: App, ctx: RouteContext): ByOperator {
  const operator = operatorOf(ctx);
  const id = operator.signedIn?.operator._id.toHexString();
  return { app: actingAs(app, { type: 'operator', ...(id && { id }) }), operator };
}

async function inProject(app: App, ctx: RouteContext): Promise<InProject> {
  const project = await operatedProject(app, ctx);
  return { ...giveOperator(app, ctx), project, caller: operatorCaller(project) };
}

/** An operator in a project, with the rights of its secret key. */
export function operatorCaller(project: Project): Caller {
  return { project, key: unstoredKey(project, 'secret'), bearer: { state: 'absent' } };
}

/**
 * The user with a publishable key; null means not signed in. For operators who view data as a user, and for work that
 * the service does with a user's rights.
 */
export function userCaller(project: Project, userId: string | null): Caller {
  const bearer: Caller['bearer'] = userId === null ? { state: 'absent' } : { state: 'user', userId };
  return { project, key: unstoredKey(project, 'publishable'), bearer };
}

/** The end user of a caller, without the rights of a secret key. */
export function endUserOf(caller: Caller): Caller {
  return caller.key.type === 'secret' ? { ...caller, key: unstoredKey(caller.project, 'publishable') } : caller;
}

function unstoredKey({ _id, createdAt }: Project, type: ApiKey['type']): ApiKey {
  return { id: _id, type, hash: '', last4: '', createdAt, expiresAt: null, revokedAt: null };
}
