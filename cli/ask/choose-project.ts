import type { App } from '../../src/app.js';
import { listProjects, requireProject } from '../../src/features/projects/project-store.js';
import type { Project } from '../../src/features/projects/project.js';
import { invalid } from '../../src/errors.js';
import { argument, defineCommandOn, option } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import type { Choice } from '../shell/prompt.js';
import { findWord } from '../shell/settings.js';

/** The option of every command that works inside a project. */
export const projectOption = option('--project <id|name>', 'project to work in (BSVC_PROJECT)');

/** The argument of commands about a project itself: else BSVC_PROJECT, else picked from a list at a terminal. */
export const projectArgument = argument('project', 'id or name of the project (BSVC_PROJECT)', {
  ask: async (context) => findNamed(context) ?? (await pickId(context)),
});

/** The same where a project is deleted: a name that was set for other work does not do. */
export const doomedProjectArgument = argument('project', 'id or name of the project', { ask: pickId });

async function pickId(context: Context): Promise<string> {
  return (await pickProject(context, 'The argument <project> is missing'))._id.toHexString();
}

/** What BSVC_PROJECT says; undefined when it is not set. */
export const findNamed = ({ layers }: Context): string | undefined => findWord(layers, 'BSVC_PROJECT');

/**
 * The project that `--project`, BSVC_PROJECT or the person at the terminal names. 404 for an unknown one, exit 2 for
 * none.
 */
export async function chooseProject(
  context: Context,
  named: string | undefined,
): Promise<{ app: App; project: Project }> {
  const word = named ?? findNamed(context);
  if (word === undefined) {
    const project = await pickProject(
      context,
      'No project named: add --project <id|name> or set BSVC_PROJECT ("bsvc project list" shows them)',
    );
    return { app: await context.app(), project };
  }
  const app = await context.app();
  return { app, project: await requireProject(app, word) };
}

/** `defineCommand` for what works inside a project: with `--project`, `app` and `project`. */
export const defineProjectCommand = defineCommandOn({ project: projectOption }, (context, input) =>
  chooseProject(context, input.project),
);

async function pickProject(context: Context, missing: string): Promise<Project> {
  return pickOne(context, missing, 'Which project?', async (app) => {
    const projects = await listProjects(app);
    if (projects.length === 0) {
      throw invalid('NO_PROJECT', 'There is no project yet. Create one with "bsvc project create <name>".');
    }
    return projects.map((project) => ({ name: project.name, value: project, description: project._id.toHexString() }));
  });
}

/** One of what the store has, which the person at the terminal chooses. */
export async function pickOne<T>(
  context: Context,
  missing: string,
  question: string,
  list: (app: App) => Promise<Choice<T>[]>,
): Promise<T> {
  // Not interactive: fail before connecting to anything.
  return context.ask.choose(question, missing, context.ask.possible ? await list(await context.app()) : []);
}
