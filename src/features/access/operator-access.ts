import type { Access } from '../../http/routes/route.js';
import type { Project } from '../projects/project.js';
import { OPERATOR_DESCRIPTION, OWNER_DESCRIPTION, PROVEN_OWNER_DESCRIPTION } from './describe-access.js';
import {
  operatedProject,
  operatorOf,
  recordRequest,
  requireOwnerRole,
  requireProven,
  settleOperator,
  type ActingOperator,
  type Recording,
} from './require-operator.js';

interface ByOperator {
  operator: ActingOperator;
}

interface InProject extends ByOperator {
  /** The one that the path names; 404 PROJECT_NOT_FOUND unless the operator sees it. */
  project: Project;
}

/** An operator in any role. */
export const OPERATOR: Access<ByOperator> = {
  ...OPERATOR_DESCRIPTION,
  admit: settleOperator,
  give: (_app, ctx) => ({ operator: operatorOf(ctx) }),
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
      await settleOperator(app, ctx);
      requireOwnerRole(ctx);
      if (asksPassword) await requireProven(app, ctx);
    },
    around: (app, ctx, run) => recordRequest(app, ctx, action, recording, run),
    give: OPERATOR.give!,
  };
}

/** `owner` within one of the projects that the operator sees. */
export function projectOwner(action: string, recording: Recording = {}): Access<InProject> {
  return { ...owner(action, recording), give: inProject };
}

async function inProject(...[app, ctx]: Parameters<NonNullable<Access['give']>>): Promise<InProject> {
  return { operator: operatorOf(ctx), project: await operatedProject(app, ctx) };
}
