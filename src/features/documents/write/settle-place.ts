import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { Referrer, Writer } from '../../access/access-rules.js';
import { heldBy, pinsOfDocument, standIn } from '../../access/rules/pins.js';
import type { Collection } from '../../collections/collection.js';
import { findHeld } from '../store/find-held.js';

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
 * Asks about the caller's sets what the write of a document in `state` depends on, by what it holds now. As much is
 * asked where there is no such document. Nothing is read where rules name no sets.
 */
export async function settlePlace(
  app: App,
  { collection, writer, afterEarlier }: UnsettledPlace,
  state: Record<string, unknown>,
): Promise<SettledPlace> {
  if (!writer?.settledBy) return { collection, writer, held: [] };
  const paths = writer.settledBy;
  const earlier = afterEarlier && (await afterEarlier(state._id as ObjectId));
  const found = earlier ?? (await findHeld(app, collection, state, paths)) ?? standIn(paths);
  const pins = pinsOfDocument(found, paths);
  const settled = await writer.settle({ read: pins, update: pins, delete: pins, updateTo: pins });
  return { collection, writer: settled, held: heldBy(found, paths) };
}
