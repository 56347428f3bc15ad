import type { App } from '../../src/app.js';
import { invalid } from '../../src/errors.js';
import type { Collection } from '../../src/features/collections/collection.js';
import { requireStoredCollection } from '../../src/features/collections/collection-store.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import type { Project } from '../../src/features/projects/project.js';
import { chooseProject } from './choose-project.js';
import { optionalArgument } from '../shell/command.js';
import type { Context } from '../shell/context.js';

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
