import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../collection.js';
import { HIDDEN_FIELD } from '../fields/field.js';
import { ruledPaths } from './collection-rules.js';

/**
 * What the embedded engine's log of a collection keeps of earlier documents: before all the fields that say who may
 * read them, without which nobody could be told that one is gone, and those by which sets are found.
 */
export function logSettings(collection: Pick<Collection, 'rls' | 'rules' | 'fields' | 'namedBy'>): {
  first: string[];
  omit: string[];
} {
  const { rls } = collection;
  const paths = [...(rls ? [rls.ownerField] : []), ...ruledPaths(collection)];
  return { first: ['isDeleted', ...new Set(paths.map((path) => path.split('.')[0]!))], omit: [HIDDEN_FIELD] };
}

/** Begins the embedded engine's log of a collection, or gives the one that it has these settings. */
export async function beginEngineLog(app: Pick<App, 'db'>, collection: Collection): Promise<void> {
  await app.db.changeLogs?.begin(documentsName(collection), logSettings(collection));
}
