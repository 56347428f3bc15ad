import { serialize, type ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { loadMatchers } from '../../../platform/database/database.js';
import type { Collection } from '../../collections/collection.js';
import type { StoredDocument } from '../store/document.js';
import { documentStore } from '../store/document-store.js';
import type { RecordWrite } from '../store/record-update.js';
import { matchShown } from '../store/shown-documents.js';
import type { StoredMoment } from '../write/stored-moment.js';

/** A document as the writes of a batch so far leave it. */
export interface Image {
  document: StoredDocument;
  /** The batch itself stores it. */
  isNew: boolean;
  /** False where operators or positions of lists changed it: what they come to is decided by the write alone. */
  isExact: boolean;
}

/** The image of the document that these writes are of; null where none of them is, or it is not stored either. */
export async function findImage(
  app: App,
  collection: Collection,
  id: ObjectId,
  writes: readonly RecordWrite[],
): Promise<Image | null> {
  const own = writes.filter((write) => write.collection._id.equals(collection._id) && writtenId(write).equals(id));
  const [first] = own;
  if (!first) return null;
  if ('insert' in first) return imageOfNew(first.insert, own.slice(1));
  const stored = await matchShown(app, collection, (shown) =>
    documentStore(app, collection).findOne({ _id: id, ...shown }, app.db.confirmedReads),
  );
  return stored && { ...changed(stored, own), isNew: false };
}

/** The images of the new documents of a collection. */
export function findNewImages(collection: Collection, writes: readonly RecordWrite[]): Image[] {
  const inCollection = writes.filter((write) => write.collection._id.equals(collection._id));
  return inCollection.flatMap((write, at) => {
    if (!('insert' in write)) return [];
    const later = inCollection.slice(at + 1).filter((each) => writtenId(each).equals(write.insert._id));
    return [imageOfNew(write.insert, later)];
  });
}

export function writtenId(write: RecordWrite): ObjectId {
  return 'insert' in write ? write.insert._id : write.id;
}

/** The image as what a refused write is judged by; null where it is not in that state. */
export async function momentOfImage({ document }: Image, state: Record<string, unknown>): Promise<StoredMoment | null> {
  const openMatcher = await loadMatchers();
  const bytes = Buffer.from(serialize(document));
  const meets: StoredMoment['meets'] = (filter) => openMatcher(filter).matches(bytes);
  return meets(state) ? { document, meets } : null;
}

function imageOfNew(insert: StoredDocument, later: readonly RecordWrite[]): Image {
  return { ...changed(insert, later), isNew: true };
}

function changed(base: StoredDocument, writes: readonly RecordWrite[]): Pick<Image, 'document' | 'isExact'> {
  let document = base;
  let isExact = true;
  const change = (path: string, value: unknown): void => {
    const next = withPath(document, path.split('.'), value) as StoredDocument | null;
    if (next) document = next;
    else isExact = false;
  };
  for (const write of writes) {
    if (!('record' in write)) continue;
    const { set, unset = [], operators = {} } = write.record;
    if (Object.keys(operators).length > 0) isExact = false;
    for (const [path, value] of Object.entries(set)) change(path, value);
    for (const path of unset) change(path, undefined);
  }
  return { document, isExact };
}

/** The object with another value at a path, or none for undefined; null where a list or a value is on the way. */
function withPath(holder: unknown, [part, ...rest]: readonly string[], value: unknown): object | null {
  if (!isPlainObject(holder)) return null;
  const { [part!]: held, ...others } = holder;
  if (rest.length === 0) return value === undefined ? others : { ...holder, [part!]: value };
  if (held === undefined && value === undefined) return holder;
  const inner = withPath(held === undefined ? {} : held, rest, value);
  return inner && { ...holder, [part!]: inner };
}

/** No list, no date, no id. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
