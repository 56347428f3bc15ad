import type { CollectionEntry } from '../../storage/keys/index-definition.js';
import { pointKey } from '../../planner/remembered-plan.js';
import { keep } from '../../planner/scans/scan.js';
import { type Equality, FieldTest, readEqualities } from '../../query/match/equalities.js';
import { translateStorageError } from '../../storage/file/translate-error.js';
import type { Storage } from '../../storage/storage.js';
import type { Call } from '../command.js';

/**
 * The document with an `_id`, in a buffer that the next read overwrites; null when there is none, undefined where its
 * key does not tell. Throws DAMAGED.
 */
export function readById(storage: Storage, collection: CollectionEntry, id: unknown): Buffer | null | undefined {
  const key = pointKey(collection, id);
  if (key === null) return undefined;
  const { documents } = storage;
  try {
    const value = documents.readKey(key);
    if (value === undefined) {
      documents.checkNeighbours(collection, null, key);
      return null;
    }
    return documents.open(collection, documents.readKeySum(), value, () => key.subarray(5));
  } catch (error) {
    throw translateStorageError(error, storage.environment.path, collection.ns);
  }
}

/** `find` for one document by its `_id`, without what a search needs that may go on. */
export const pointRead = {
  /**
   * What `find` would answer for a filter of plain equalities, `_id` among them: a copy of the document, or null.
   * Undefined for any other filter. Throws as `find` does.
   */
  run({ core, db }: Call, name: string, filter: object): Buffer | null | undefined {
    if (!('_id' in filter) && !('$and' in filter)) return undefined;
    const equalities = readEqualities(filter);
    const id = equalities === null ? undefined : idOf(equalities);
    if (equalities === null || id === undefined) return undefined;
    const { storage, commandCounts } = core;
    const ns = `${db}.${name}`;
    try {
      storage.refresh();
      const collection = storage.catalog.find(ns);
      // A key that is cut stands for more than one `_id`.
      if (collection === null || collection.definition.longIds === true) return undefined;
      const bytes = readById(storage, collection, id.value);
      if (bytes === undefined) return undefined;
      const meets = bytes === null || equalities.length === 1 || testOf(equalities)?.test(bytes);
      if (meets === undefined) return undefined;
      commandCounts.set('find', (commandCounts.get('find') ?? 0) + 1);
      return bytes !== null && meets ? keep(bytes) : null;
    } catch (error) {
      throw storage.damage.judge(error, ns);
    }
  },
};

/** The one condition on `_id`; undefined where there is none, or another. */
function idOf(equalities: readonly Equality[]): Equality | undefined {
  let found: Equality | undefined;
  for (const equality of equalities) {
    if (equality.path !== '_id') continue;
    if (found !== undefined) return undefined;
    found = equality;
  }
  return found;
}

/** The last test: of conditions beside the `_id` most points have the same as the one before. */
let last: { readonly others: readonly Equality[]; readonly test: FieldTest | null } = { others: [], test: null };

function testOf(equalities: readonly Equality[]): FieldTest | null {
  let at = 0;
  let isSame = true;
  for (const { path, value } of equalities) {
    if (path === '_id') continue;
    const other = last.others[at++];
    if (other === undefined || other.path !== path || other.value !== value) isSame = false;
  }
  if (!isSame || at !== last.others.length) {
    const others = equalities.filter(({ path }) => path !== '_id');
    last = { others, test: FieldTest.of(others) };
  }
  return last.test;
}
