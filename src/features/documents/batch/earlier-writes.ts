import { serialize } from 'bson';
import { loadMatchers } from '../../../platform/database/database.js';
import type { Collection } from '../../collections/collection.js';
import { imageOfNew, type Image } from '../store/find-held.js';
import { writtenId, type RecordWrite } from '../store/record-update.js';
import type { StoredMoment } from '../write/stored-moment.js';

/** The images of the new documents of a collection. */
export function findNewImages(collection: Collection, writes: readonly RecordWrite[]): Image[] {
  const inCollection = writes.filter((write) => write.collection._id.equals(collection._id));
  return inCollection.flatMap((write, at) => {
    if (!('insert' in write)) return [];
    const later = inCollection.slice(at + 1).filter((each) => writtenId(each).equals(write.insert._id));
    return [imageOfNew(write.insert, later)];
  });
}

/** The image as what a refused write is judged by; null where it is not in that state. */
export async function momentOfImage({ document }: Image, state: Record<string, unknown>): Promise<StoredMoment | null> {
  const openMatcher = await loadMatchers();
  const bytes = Buffer.from(serialize(document));
  const meets: StoredMoment['meets'] = (filter) => openMatcher(filter).matches(bytes);
  return meets(state) ? { document, meets } : null;
}
