import type { Document } from 'bson';
import type { App } from '../../../app.js';
import type { EndWriter, Writer } from '../../access/access-rules.js';
import type { Pins } from '../../access/rules/compile-rule.js';
import { heldBy, pinsOfDocument } from '../../access/rules/pins.js';
import type { Collection } from '../../collections/collection.js';
import { findHeld } from '../store/find-held.js';
import { changedAlone, changedPaths, documentWith, isDecidedBy } from './admit-write.js';
import type { ChangedFields } from './document-change.js';

/** The place of one attempt of a write. */
export interface SettledPlace {
  collection: Collection;
  writer: Writer;
  /** Conditions that the document meets as long as it is the one for which the writer was settled. */
  held: readonly Document[];
}

/**
 * Asks about the caller's sets what the write of a document in `state` depends on: what it holds now, and what it would
 * hold after the change. Null when there is no such document. Nothing is read where rules name no sets.
 */
export async function settlePlace(
  app: App,
  { collection, writer }: Pick<SettledPlace, 'collection' | 'writer'>,
  state: Record<string, unknown>,
  change: ChangedFields | null,
): Promise<SettledPlace | null> {
  if (!writer || writer.settledBy.length === 0) return { collection, writer, held: [] };
  const paths = writer.settledBy;
  const found = await findHeld(app, collection, state, paths);
  if (!found) return null;
  const pins = pinsOfDocument(found, paths);
  const updateTo = change ? pinsAfter(writer, found, change) : pins;
  const settled = await writer.settle({ read: pins, update: pins, delete: pins, updateTo });
  return { collection, writer: settled, held: heldBy(found, paths) };
}

function pinsAfter({ settledBy }: EndWriter, before: Document, change: ChangedFields): Pins {
  const changed = changedPaths(change);
  return new Map(
    settledBy.flatMap((path) => {
      const key = changed.findLast((each) => isDecidedBy(each, path));
      if (key !== undefined && change.results?.has(key)) throw changedAlone(key, path);
      return [...pinsOfDocument(key === undefined ? before : documentWith(key, change), [path])];
    }),
  );
}
