import type { App } from '../../src/app.js';
import { listProjects, requireProject } from '../../src/features/projects/project-store.js';
import type { Project } from '../../src/features/projects/project.js';
import { invalid } from '../../src/errors.js';
import { argument, defineCommandOn, option, optionalArgument } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import type { Choice } from '../shell/prompt.js';
import { findWord } from '../shell/settings.js';
import type { Collection } from '../../src/features/collections/collection.js';
import { requireStoredCollection, listCollections } from '../../src/features/collections/collection-store.js';
import type { Caller } from '../../src/features/access/caller.js';
import { operatorCaller } from '../../src/features/access/operator-access.js';
import { viewAs } from '../../src/features/management/view-as.js';
import type { User } from '../../src/features/users/user.js';
import { requireUser } from '../../src/features/users/user-store.js';
import { findActor } from '../shell/record-audit.js';

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

/** The argument of commands about one collection; picked from a list at a terminal once the project is known. */
export const collectionArgument = optionalArgument(
  'collection',
  'name of the collection; picked from a list when left out',
);

/** The collection that the words name, or that the person picks. Exit 2 without either, 404 for an unknown one. */
export async function chooseCollection(
  context: Context,
  named: { project: string | undefined; collection: string | undefined },
): Promise<{ app: App; project: Project; collection: Collection }> {
  const missing = 'The argument <collection> is missing';
  // Not interactive: fail before connecting to anything.
  if (named.collection === undefined && !context.ask.possible) return context.ask.choose('', missing, []);
  const { app, project } = await chooseProject(context, named.project);
  if (named.collection !== undefined) {
    return { app, project, collection: await requireStoredCollection(app, project._id, named.collection) };
  }
  const collections = await listCollections(app, project._id);
  if (collections.length === 0) {
    throw invalid(
      'NO_COLLECTION',
      'The project has no collection yet. Register one with "bsvc collection add <name>".',
    );
  }
  const collection = await context.ask.choose(
    'Which collection?',
    missing,
    collections.map((each) => ({ name: each.name, value: each })),
  );
  return { app, project, collection };
}

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
