import type { App } from '../../app.js';
import { conflict, type AppError } from '../../errors.js';
import { documentsName, type Collection } from './collection.js';
import { PENDING } from './document-indexes.js';

const MAX_LISTED = 20;

interface SharedValue {
  _id: unknown;
  count: number;
}

/** The 409 that tells which values keep fields from being unique; to be asked when a unique index could not be built. Null when there are none any more. */
export async function findDuplicates(app: Pick<App, 'db'>, collection: Collection): Promise<AppError | null> {
  for (const { name, unique } of collection.fields) {
    if (!unique) continue;
    const shared = await app.db
      .collection(documentsName(collection))
      .aggregate<SharedValue>([
        { $match: { isDeleted: { $in: [false, PENDING] }, [name]: { $exists: true } } },
        { $group: { _id: `$${name}`, count: { $sum: 1 } } },
        { $match: { count: { $gt: 1 } } },
        { $sort: { count: -1, _id: 1 } },
        { $limit: MAX_LISTED },
      ])
      .toArray();
    if (shared.length > 0) return cannotBeUnique(name, shared);
  }
  return null;
}

function cannotBeUnique(field: string, shared: readonly SharedValue[]): AppError {
  const details = shared.map(({ _id, count }) => {
    const text = JSON.stringify(_id) ?? 'nothing';
    const value = text.length > 80 ? `${text.slice(0, 80)}…` : text;
    return { field, rule: 'unique', message: `${value} is in ${count} documents` };
  });
  const list = details.map(({ message }) => message).join('; ');
  return conflict('DUPLICATE_VALUE', `${field} cannot be unique, since documents share values: ${list}`, { details });
}
