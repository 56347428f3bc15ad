import { ObjectId } from 'bson';
import { createProject } from '../../src/features/projects/create-project.js';
import type { Project } from '../../src/features/projects/project.js';
import { addCollection, type NewCollection } from '../../src/features/collections/add-collection.js';
import { documentsName, type Collection } from '../../src/features/collections/collection.js';
import type { StoredDocument } from '../../src/features/documents/store/document.js';
import type { Store } from '../../src/platform/database/database.js';
import type { App } from '../../src/app.js';

export interface TestProject {
  project: Project;
  /** Raw keys. */
  publishable: string;
  secret: string;
}

let made = 0;

/** A new project with keys, under a name nobody else has. */
export async function buildProject(app: App, name?: string): Promise<TestProject> {
  const { project, keys } = await createProject(app, { name: name ?? `project ${process.pid} ${++made}` });
  return { project, publishable: keys!.publishable, secret: keys!.secret };
}

/** What a request says of access; the rest of it is public, as what most tests read with the publishable key. */
function withAccess<T extends Pick<NewCollection, 'access' | 'rls' | 'rules'>>(input: T): T {
  const { rls, rules, access } = input;
  const isSaid = access !== undefined || Boolean(rules) || (Boolean(rls) && rls !== 'off');
  return isSaid ? input : { ...input, access: 'public' };
}

/** A registered collection, public unless access is given; `flexible` unless fields are given. */
export async function buildCollection(
  app: App,
  project: Project,
  input: Partial<NewCollection> = {},
): Promise<Collection> {
  const { collection } = await addCollection(app, project, {
    name: `things${++made}`,
    mode: input.fields ? 'enforced' : 'flexible',
    ...withAccess(input),
  });
  return collection;
}

/** The stored documents of a collection, for what a test writes or looks at past all rules. */
export function storedDocuments(app: Pick<App, 'db'>, collection: Collection): Store<StoredDocument> {
  return app.db.collection<StoredDocument>(documentsName(collection));
}

/**
 * Stores documents past all rules, created a second apart, with the system fields that they do not bring along. Their
 * ids.
 */
export async function placeDocuments(
  app: App,
  collection: Collection,
  documents: readonly Record<string, unknown>[],
  startMs = app.clock.now(),
): Promise<string[]> {
  const stored = documents.map((document, at) => {
    const moment = new Date(startMs + at * 1000);
    const system = { isDeleted: false, deletedAt: null, createdAt: moment, updatedAt: moment };
    return { _id: new ObjectId(), ...system, ...document };
  });
  await storedDocuments(app, collection).insertMany(stored as never);
  return stored.map(({ _id }) => _id.toHexString());
}
