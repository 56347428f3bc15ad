import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, type AppError } from '../../../errors.js';
import type { WriteStep } from '../../../platform/database/database.js';
import { findObjectId } from '../../../platform/ids.js';
import { findCollection, peekCollection } from '../../collections/collection-store.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { referencesOf } from '../../collections/references/reference.js';
import { readDecidedBy, referableFilters, type Referrer } from '../../access/access-rules.js';
import { standIn } from '../../access/rules/pins.js';
import { takeTurns } from '../../../turns.js';
import type { StoredDocument } from './document.js';
import { findHeld, findImage } from './find-held.js';
import { MAX_CHECKS, referenceMissing, tooManyReferences } from './new-references.js';
import type { RecordWrite } from './record-update.js';

type Filter = Record<string, unknown>;

/** What has to be so for a write, decided by the write itself where the database can. */
export interface ReferenceCheck {
  collection: Collection;
  filter: Filter;
  /** Whether a document must match, or none may. */
  matches: boolean;
  /** Why the write is refused otherwise; null where it has to be planned again. */
  refusal: () => Promise<AppError | null>;
}

type Insertion = Extract<RecordWrite, { insert: StoredDocument }>;

/**
 * What the references of a collection ask of a new document (writes.md 3), after `earlier` writes of the same
 * transaction. 400 TOO_MANY_REFERENCES, 400 REFERENCE_MISSING where there is no such collection.
 */
export async function checkReferences(
  app: App,
  { collection, referrer, insert }: Insertion,
  earlier: readonly RecordWrite[] = [],
): Promise<ReferenceCheck[]> {
  if (insert.isDeleted !== false) return [];
  const ownId = insert._id.toHexString();
  const checks = new Map<string, ReferenceCheck>();
  const turn = takeTurns();
  const readable: Target['readable'] = new Map();
  for (const { field, to } of referencesOf(collection)) {
    for (const id of [insert[field]].flat()) {
      if (typeof id !== 'string' || (to === collection.name && id === ownId) || checks.has(`${to} ${id}`)) continue;
      if (checks.size === MAX_CHECKS) throw tooManyReferences();
      await turn();
      checks.set(`${to} ${id}`, await findTarget(app, { collection, referrer, earlier, readable }, { field, to, id }));
    }
  }
  return [...checks.values()];
}

interface Referring {
  collection: Collection;
  referrer?: Referrer | null | undefined;
  earlier: readonly RecordWrite[];
  readable?: Target['readable'];
}

/** The check that a document refers to one that is there, and that its referrer may read. */
async function findTarget(
  app: App,
  { collection, referrer, earlier, readable = new Map() }: Referring,
  { field, to, id }: { field: string; to: string; id: string },
): Promise<ReferenceCheck> {
  const { projectId } = collection;
  const target = peekCollection(app, projectId, to) ?? (await findCollection(app, projectId, to));
  if (!target) throw referenceMissing({ field, to, same: [] });
  const filter = { _id: findObjectId(id), isDeleted: false };
  const missing = (): Promise<AppError> => Promise.resolve(referenceMissing({ field, to, same: [] }));
  const check: ReferenceCheck = { collection: target, filter, matches: true, refusal: missing };
  return referrer ? readableTarget(app, { check, id: filter._id, referrer, earlier, readable }) : check;
}

interface Target {
  check: ReferenceCheck;
  id: ObjectId | null;
  referrer: Referrer;
  earlier: readonly RecordWrite[];
  /** By collection, where one document is as readable as another. */
  readable: Map<Collection, Filter[]>;
}

/**
 * The check for a document that the referrer has to be able to read. One that is not readable is answered as one that
 * is not there, after the same reads.
 */
async function readableTarget(app: App, target: Target): Promise<ReferenceCheck> {
  const { check, id, referrer, earlier, readable } = target;
  const { collection } = check;
  const paths = readDecidedBy(collection);
  const readFilters = async (): Promise<Filter[]> => {
    const known = readable.get(collection);
    if (known) return known;
    if (paths.length > 0) {
      const image = id && (await findImage(app, collection, id, earlier));
      const held = image?.document ?? (await findHeld(app, collection, check.filter, paths));
      return referableFilters(app, collection, referrer, held ?? standIn(paths));
    }
    const filters = await referableFilters(app, collection, referrer, {});
    readable.set(collection, filters);
    return filters;
  };
  const filterNow = async (): Promise<Filter> => {
    const filters = await readFilters();
    return filters.length > 0 ? { ...check.filter, $and: filters } : check.filter;
  };
  return {
    ...check,
    filter: await filterNow(),
    // What its rule depends on may have changed since.
    refusal: async () => ((await hasMatch(app, collection, await filterNow())) ? referredChanging() : check.refusal()),
  };
}

/** The 409 where what the referrer may read has changed since it was asked. */
function referredChanging(): AppError {
  const text = 'A document that this one refers to is being changed by others: try again';
  return conflict('DOCUMENT_CHANGING', text, { retryAfterSeconds: 1 });
}

async function hasMatch(app: App, collection: Collection, filter: Filter): Promise<boolean> {
  const stored = app.db.collection<StoredDocument>(documentsName(collection));
  return (await stored.findOne(filter, { ...app.db.confirmedReads, projection: { _id: 1 } })) !== null;
}

/** A condition among the steps of a write. */
export type WriteCondition = Extract<WriteStep, { matches: boolean }>;

/** A check as a condition of a write. */
export function conditionOf({ collection, filter, matches }: ReferenceCheck): WriteCondition {
  return { collection: documentsName(collection), filter, matches };
}
