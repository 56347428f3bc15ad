import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import type { LongRead } from '../../../platform/database/database.js';
import type { Collection, UnindexedRead } from '../collection.js';
import { collectionStore } from '../collection-store.js';
import { HIDDEN_FIELD } from '../fields/field.js';
import { namedPath } from '../fields/nocase.js';
import { checkIndexSpecs } from './check-index-specs.js';

/** Shapes that a process reports at most; a client could ask for any number of fields. */
const MAX_SHAPES = 200;
/** Shapes that the record of a collection keeps. */
const MAX_KEPT = 10;
const MAX_PARTS = 4;
const STORED_NAME = /\.documents_[0-9a-f]{24}_([0-9a-f]{24})$/;

/**
 * Counts reads of documents that looked at more than 10,000 of them, logs each shape once, and notes the index that
 * would help in the collection's record.
 */
export function watchUnindexedReads(app: App): void {
  const known = new Set<string>();
  app.db.onLongRead((told) => {
    const read = { ...told, conditions: told.conditions.map(named), sort: told.sort.map(named) };
    const id = STORED_NAME.exec(read.ns)?.[1];
    if (id === undefined || isWhole(read)) return;
    app.metrics.event('long_reads', read.command);
    const shape = shapeOf(read);
    const key = `${id} ${shape}`;
    if (known.has(key) || known.size >= MAX_SHAPES) return;
    known.add(key);
    app.backgroundTasks.add('unindexed-reads', { id: new ObjectId(id), shape, read }, async (items) => {
      for (const item of items) await tell(app, item);
    });
  });
}

/** By the field that the caller named. */
const named = <T extends { path: string }>(part: T): T => ({ ...part, path: namedPath(part.path) });

/** Fields of the service that every read of documents asks for. */
const isOwn = (path: string): boolean => path === 'isDeleted' || path === '_id' || path.startsWith(HIDDEN_FIELD);

/** An export or the like, which wants everything there is. */
function isWhole({ command, conditions, sort }: LongRead): boolean {
  return command !== 'aggregate' && [...conditions, ...sort].every(({ path }) => isOwn(path));
}

/** A read without its values, such as `status eq, views gt; -createdAt`. */
function shapeOf({ conditions, sort }: LongRead): string {
  const asked = conditions.filter(({ path }) => !isOwn(path)).map(({ path, op }) => `${path} ${op}`);
  const order = sort.map(({ path, descending }) => (descending ? `-${path}` : path));
  return `${[...new Set(asked)].sort().join(', ')}; ${order.join(',')}`.slice(0, 500);
}

async function tell(app: App, { id, shape, read }: { id: ObjectId; shape: string; read: LongRead }): Promise<void> {
  const collection = await collectionStore(app).findOne({ _id: id, state: 'active' });
  if (!collection) return;
  const index = suggestIndex(collection, read);
  app.log.warn(
    { project: collection.projectId.toHexString(), collection: collection.name, shape, index, usedIndex: read.index },
    index === null
      ? 'a read looked at more than 10,000 documents: narrow it by a condition that has an index'
      : 'a read looked at more than 10,000 documents: the index named here would help',
  );
  if (index === null) return;
  const unindexed: UnindexedRead = { shape, index, at: new Date(app.clock.now()) };
  await collectionStore(app).updateOne(
    { _id: id, state: 'active', 'unindexed.shape': { $ne: shape } },
    { $push: { unindexed: { $each: [unindexed], $slice: -MAX_KEPT } } },
  );
}

const RANGES: ReadonlySet<string> = new Set(['gt', 'gte', 'lt', 'lte', 'prefix']);

/**
 * The index that serves a read: fields with a wanted value first, then the sort or else a range, or the field whose
 * place is asked for. Null when there is none that the collection may have and has not.
 */
export function suggestIndex(
  collection: Pick<Collection, 'mode' | 'fields' | 'indexes' | 'rls'>,
  { conditions, sort }: Pick<LongRead, 'conditions' | 'sort'>,
): string | null {
  const asked = conditions.filter(({ path }) => !isOwn(path) && path !== collection.rls?.ownerField);
  const pathsOf = (wanted: (op: string) => boolean): string[] => [
    ...new Set(asked.filter(({ op }) => wanted(op)).map(({ path }) => path)),
  ];
  const place = pathsOf((op) => op === 'within')[0];
  const equal = pathsOf((op) => op === 'eq' || op === 'in');
  const ordered = sort.filter(({ path }) => path !== '_id' && !equal.includes(path));
  const order = ordered.map(({ path, descending }) => (descending ? `-${path}` : path));
  const isDefault = order.length === 1 && order[0] === '-createdAt';
  const range = pathsOf((op) => RANGES.has(op)).find((path) => !equal.includes(path));
  // An index of one field has the default order behind it.
  const behind = isDefault && equal.length < 2 ? [] : order;
  const spec =
    place === undefined
      ? [...equal, ...(behind.length > 0 ? behind : equal.length === 0 || order.length === 0 ? [range] : [])]
          .filter((part) => part !== undefined)
          .slice(0, MAX_PARTS)
          .join(',')
      : `${place}:2dsphere`;
  if (spec === '' || collection.indexes.includes(spec)) return null;
  try {
    checkIndexSpecs({ ...collection, indexes: [...collection.indexes, spec] });
    return spec;
  } catch {
    return null;
  }
}

/** The indexes that reads of the collection lacked, the last ones, without those that it has got since. */
export function suggestedIndexes({ indexes, unindexed = [] }: Collection): string[] {
  return [...new Set(unindexed.map(({ index }) => index))].filter((index) => !indexes.includes(index));
}
