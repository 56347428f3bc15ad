import type { App } from '../../../app.js';
import { documentsName, type Collection } from '../collection.js';

/** The bytes that each index takes, by its name in the database; empty for a collection that holds nothing yet. */
export async function readIndexSizes(app: Pick<App, 'db'>, collection: Collection): Promise<Record<string, number>> {
  const stages = [{ $collStats: { storageStats: {} } }];
  try {
    const [stats] = await app.db.collection(documentsName(collection)).aggregate(stages).toArray();
    return (stats?.['storageStats'] as { indexSizes?: Record<string, number> } | undefined)?.indexSizes ?? {};
  } catch (error) {
    if ((error as { code?: unknown }).code === NAMESPACE_NOT_FOUND) return {};
    throw error;
  }
}

const NAMESPACE_NOT_FOUND = 26;
