import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { seriesStore } from '../../collections/indexes/insert-series.js';
import { removeProjectRecords } from '../write/idempotency.js';
import { batchStore } from './insert-batch.js';

/**
 * Removes what is remembered about writes of a project that is being deleted: bulk inserts under way and answers kept
 * for repeated requests. Harmless to repeat.
 */
export async function removeProjectWrites(app: App, projectId: ObjectId): Promise<void> {
  await batchStore(app).deleteMany({ projectId });
  await seriesStore(app).deleteMany({ projectId });
  await removeProjectRecords(app, projectId);
}
