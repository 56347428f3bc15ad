import type { App } from '../../app.js';
import { collectionStore } from './collection-store.js';
import { projectStore } from '../projects/project-store.js';

/** As messages of the engine name the documents of a collection: by the ids of project and collection. */
const STORED = /(?:[\w-]+\.)?documents_([0-9a-f]{24})_([0-9a-f]{24})\b/g;

/**
 * Puts the names that people gave in place of those that documents are stored under: `things of project shop`. What the
 * store cannot tell, since that is damaged too, stays as it is.
 */
export async function openGivenNames(app: App | null): Promise<(text: string) => string> {
  const read = async <T>(find: (app: App) => Promise<T[]>): Promise<T[]> => (app ? find(app).catch(() => []) : []);
  const projects = await read((from) => projectStore(from).find({}).toArray());
  const collections = await read((from) => collectionStore(from).find({}).toArray());
  const nameOf = (records: { _id: { toHexString(): string }; name: string }[], id: string): string | undefined =>
    records.find(({ _id }) => _id.toHexString() === id)?.name;
  return (text) =>
    text.replace(STORED, (stored, projectId: string, collectionId: string) => {
      const project = nameOf(projects, projectId);
      // The accounts of a project have no record until their collection is changed; its id is the project's.
      const collection = nameOf(collections, collectionId) ?? (collectionId === projectId ? 'users' : undefined);
      return project === undefined || collection === undefined ? stored : `${collection} of project ${project}`;
    });
}
