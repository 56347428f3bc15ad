import type { Collection } from '../../collections/collection.js';
import { imageOfNew, type Image } from '../store/find-held.js';
import { writtenId, type RecordWrite } from '../store/record-update.js';

/** The images of the new documents of a collection. */
export function findNewImages(collection: Collection, writes: readonly RecordWrite[]): Image[] {
  const inCollection = writes.filter((write) => write.collection._id.equals(collection._id));
  return inCollection.flatMap((write, at) => {
    if (!('insert' in write)) return [];
    const later = inCollection.slice(at + 1).filter((each) => writtenId(each).equals(write.insert._id));
    return [imageOfNew(write.insert, later)];
  });
}
