import type { App } from '../../src/app.js';
import type { Project } from '../../src/features/projects/project.js';
import type { User } from '../../src/features/users/user.js';
import { requireUser } from '../../src/features/users/user-store.js';
import { chooseProject, projectOption } from './choose-project.js';
import { argument, defineCommandOn, option } from '../shell/command.js';
import type { Context } from '../shell/context.js';

/** For whom a command looks at a project. */
export const playedOption = option('--as <user>', 'as this user (id or e-mail address) sees it, or "anyone"');

/** The id of the user that `--as` names; null for `anyone`. 404 for an unknown one. */
export async function findPlayed(app: App, project: Project, as: string): Promise<string | null> {
  return as === 'anyone' ? null : (await requireUser(app, project._id, as))._id.toHexString();
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
