import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { COLLECTIONS } from './collection-store.js';
import { PROJECTS } from '../projects/project-store.js';
import { USERS } from './users-collection.js';

/** As messages of the engine name the documents of a collection: by the ids of project and collection. */
const STORED = /(?:[\w-]+\.)?documents_([0-9a-f]{24})_([0-9a-f]{24})\b/g;

/**
 * Puts the names that people gave in place of those that documents are stored under: `things of project shop`. What the
 * store cannot tell, since that is damaged too, stays as it is.
 */
export async function openDisplayNames(app: App | null): Promise<(text: string) => string> {
  const projects = app ? await readNames(app, PROJECTS) : NO_NAMES;
  const collections = app ? await readNames(app, COLLECTIONS) : NO_NAMES;
  return (text) =>
    text.replace(STORED, (stored, projectId: string, collectionId: string) => {
      const project = projects.get(projectId);
      // The accounts of a project have no record until their collection is changed; its id is the project's.
      const collection = collections.get(collectionId) ?? (collectionId === projectId ? USERS : undefined);
      return project === undefined || collection === undefined ? stored : `${collection} of project ${project}`;
    });
}

const NO_NAMES: ReadonlyMap<string, string> = new Map();

async function readNames({ db }: App, name: string): Promise<ReadonlyMap<string, string>> {
  const found = await db
    .collection<{ _id: ObjectId; name: string }>(name)
    .find({}, { projection: { name: 1 } })
    .toArray()
    .catch(() => []);
  return new Map(found.map((record) => [record._id.toHexString(), record.name]));
}
