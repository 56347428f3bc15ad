import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { EndWriter, Referrer, Writer } from '../../access/access-rules.js';
import { heldBy, pinsOfDocument, standIn } from '../../access/rules/pins.js';
import type { Collection } from '../../collections/collection.js';
import { findHeld } from '../store/find-held.js';
import { changedAlone, changedPaths, documentWith, isDecidedBy } from './admit-write.js';
import type { ChangedFields } from './document-change.js';

/** The place of a write to be settled. */
export interface UnsettledPlace {
  collection: Collection;
  writer: Writer;
  /** With whose rights it refers to documents, where that is not the writer. */
  referrer?: Referrer | undefined;
  /** What the document of an id holds after writes that will be carried out before this one, in one transaction. */
  afterEarlier?: (id: ObjectId) => Promise<Document | null>;
}

/** With whose rights a write at the place refers to documents; null: the project's. */
export function referrerOf({ writer, referrer }: UnsettledPlace): Referrer | null {
  return referrer ?? writer;
}

/** The place of one attempt of a write. */
export interface SettledPlace {
  collection: Collection;
  writer: Writer;
  /** Conditions that the document meets as long as it is the one for which the writer was settled. */
  held: readonly Document[];
}

/**
 * Asks about the caller's sets what the write of a document in `state` depends on: what it holds now, and what it would
 * hold after the change. As much is asked where there is no such document. Nothing is read where rules name no sets.
 * 400 for a change whose result the rules could not be asked about, whether there is such a document or not.
 */
export async function settlePlace(
  app: App,
  { collection, writer, afterEarlier }: UnsettledPlace,
  state: Record<string, unknown>,
  change: ChangedFields | null,
): Promise<SettledPlace> {
  if (!writer?.settledBy) return { collection, writer, held: [] };
  const paths = writer.settledBy;
  const keys = change ? keysByPath(writer, change) : new Map<string, string>();
  const earlier = afterEarlier && (await afterEarlier(state._id as ObjectId));
  const found = earlier ?? (await findHeld(app, collection, state, paths)) ?? standIn(paths);
  const pins = pinsOfDocument(found, paths);
  const after = paths.flatMap((path) => {
    const key = keys.get(path);
    return [...pinsOfDocument(key === undefined ? found : documentWith(key, change!), [path])];
  });
  const settled = await writer.settle({ read: pins, update: pins, delete: pins, updateTo: new Map(after) });
  return { collection, writer: settled, held: heldBy(found, paths) };
}

/** By path that the rules name, the key of the change that decides about it. */
function keysByPath({ settledBy, ruledPaths }: EndWriter, change: ChangedFields): Map<string, string> {
  const keys = new Map<string, string>();
  const changed = changedPaths(change);
  for (const path of [...settledBy!, ...ruledPaths]) {
    const key = changed.findLast((each) => isDecidedBy(each, path));
    if (key === undefined) continue;
    const result = change.results?.get(key);
    const isOpen = result === null || (result !== undefined && (key !== path || settledBy!.includes(path)));
    if (isOpen) throw changedAlone(key, path);
    keys.set(path, key);
  }
  return keys;
}
