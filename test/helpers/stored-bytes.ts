import type { Database } from '../../src/platform/database/database.js';

/**
 * All bytes that are stored for a project, in whatever collection: documents, their change logs where the database has
 * such, and what the service keeps for it.
 */
export async function storedBytes(
  db: Pick<Database, 'listNames' | 'measure' | 'collection' | 'changeLogs'>,
  projectId: string,
): Promise<number> {
  let bytes = 0;
  for (const name of await db.listNames()) {
    if (name.startsWith('documents_')) {
      if (name.includes(projectId)) bytes += (await db.measure(name)).bytes + (db.changeLogs?.bytes(name) ?? 0);
      continue;
    }
    const ofProject = { $match: { $expr: { $eq: [{ $toString: '$projectId' }, projectId] } } };
    const sum = { $group: { _id: null, bytes: { $sum: { $bsonSize: '$$ROOT' } } } };
    const [found] = await db.collection(name).aggregate<{ bytes: number }>([ofProject, sum]).toArray();
    bytes += Number(found?.bytes ?? 0);
  }
  return bytes;
}
