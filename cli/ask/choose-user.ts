import type { App } from '../../src/app.js';
import type { Caller } from '../../src/features/access/caller.js';
import { operatorCaller } from '../../src/features/access/operator-access.js';
import { viewAs } from '../../src/features/management/view-as.js';
import type { Project } from '../../src/features/projects/project.js';
import type { User } from '../../src/features/users/user.js';
import { requireUser } from '../../src/features/users/user-store.js';
import { chooseProject, projectOption } from './choose-project.js';
import { argument, defineCommandOn, option } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { findActor } from '../shell/record-audit.js';

/** The user to view a project as. */
export const viewAsOption = option('--as <user>', 'view as this user (id or email address), or "anyone"');

/** Reads documents as the operator, or as the user of `--as`, which is recorded in the audit log. */
export function readAs<T>(
  app: App,
  { as, ...of }: { project: Project; collection: string; as: string | undefined },
  read: (caller: Caller) => Promise<T>,
): Promise<T> {
  return as === undefined ? read(operatorCaller(of.project)) : viewAs(app, { actor: findActor(), ...of, as }, read);
}

/** The argument of commands about one end user. */
const userArgument = argument('user', 'id or e-mail address of the user');

/** The user of the project that the command line names; 404 for an unknown one. */
async function chooseUser(
  context: Context,
  input: { user: string; project: string | undefined },
): Promise<{ app: App; project: Project; user: User }> {
  const { app, project } = await chooseProject(context, input.project);
  return { app, project, user: await requireUser(app, project._id, input.user) };
}

/** `defineCommand` for what works on one end user: with `<user>`, `--project`, and `app`, `project` and `user`. */
export const defineUserCommand = defineCommandOn({ user: userArgument, project: projectOption }, chooseUser);
