import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import { isTimeExceeded, type WriteStep } from '../../../platform/database/database.js';
import { findObjectId } from '../../../platform/ids.js';
import { findCollection, peekCollection } from '../../collections/collection-store.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findReferences, referencesOf, type Reference } from '../../collections/references/reference.js';
import {
  changeableFilter,
  findSight,
  readDecidedBy,
  referableFilters,
  type Referrer,
} from '../../access/access-rules.js';
import { NOTHING } from '../../access/rules/compile-rule.js';
import { standIn } from '../../access/rules/pins.js';
import { takeTurns } from '../../../turns.js';
import type { StoredDocument } from './document.js';
import { findHeld, findImage } from './find-held.js';
import { MAX_CHECKS, referenceMissing, tooManyReferences } from './new-references.js';
import { writtenId, type RecordChange, type RecordWrite } from './record-update.js';

type Filter = Record<string, unknown>;

/** In a document that was trashed because it refers to one that was: that one's id. It is taken back with it. */
export const TRASHED_WITH = `${HIDDEN_FIELD}.trashedWith` as const;

/** What has to be so for a write, decided by the write itself where the database can. */
export interface ReferenceCheck {
  collection: Collection;
  filter: Filter;
  /** Whether a document must match, or none may. */
  matches: boolean;
  /** Why the write is refused otherwise; null where it has to be planned again. */
  refusal: () => Promise<AppError | null>;
}

/** A write with what its references ask. */
export interface CheckedWrite {
  write: RecordWrite;
  checks: readonly ReferenceCheck[];
  /** Documents refer to this one that change after it. */
  settled: { collection: Collection; id: ObjectId } | null;
}

/** False for writes that references have nothing to do with: most of them. */
export async function concernsReferences(app: App, write: RecordWrite): Promise<boolean> {
  const { collection } = write;
  if ('insert' in write) return referencesOf(collection).length > 0 && write.insert.isDeleted === false;
  if ('update' in write) return false;
  if ('removed' in write || write.record.action === 'delete') return isReferredTo(app, collection);
  if (write.record.action === 'recover') {
    return referencesOf(collection).length > 0 || isReferredTo(app, collection);
  }
  return false;
}

const isReferredTo = async (app: App, collection: Collection): Promise<boolean> =>
  (await findReferences(app, collection)).length > 0;

/**
 * What the references of a collection, and those to it, ask of a write (writes.md 3), after `earlier` ones of the same
 * transaction. 400 TOO_MANY_REFERENCES, 400 REFERENCE_MISSING where there is no such collection.
 */
export function checkReferences(
  app: App,
  write: RecordWrite,
  earlier: readonly RecordWrite[] = [],
): Promise<CheckedWrite> {
  if ('insert' in write) return checkValues(app, write, earlier, (field) => [write.insert[field]]);
  if ('update' in write) return Promise.resolve({ write, checks: [], settled: null });
  if ('removed' in write) return checkRemoval(app, write, earlier);
  const { record } = write;
  if (record.action === 'delete') return checkRemoval(app, write, earlier);
  if (record.action === 'recover') return checkRecovery(app, { ...write, record });
  return Promise.resolve({ write, checks: [], settled: null });
}

async function checkValues(
  app: App,
  write: RecordWrite,
  earlier: readonly RecordWrite[],
  read: (field: string) => unknown[],
): Promise<CheckedWrite> {
  const { collection, referrer } = write;
  const ownId = 'insert' in write ? write.insert._id.toHexString() : null;
  const checks = new Map<string, ReferenceCheck>();
  const turn = takeTurns();
  const readable: Target['readable'] = new Map();
  for (const { field, to } of referencesOf(collection)) {
    for (const id of read(field).flat()) {
      if (typeof id !== 'string' || (to === collection.name && id === ownId) || checks.has(`${to} ${id}`)) continue;
      if (checks.size === MAX_CHECKS) throw tooManyReferences();
      await turn();
      checks.set(`${to} ${id}`, await findTarget(app, { collection, referrer, earlier, readable }, { field, to, id }));
    }
  }
  return { write, checks: [...checks.values()], settled: null };
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
  if (!target) throw referenceMissing(field, to);
  const filter = { _id: findObjectId(id), isDeleted: false };
  const missing = (): Promise<AppError> => Promise.resolve(referenceMissing(field, to));
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

/** A document that comes back must not refer to one that is gone, and those come back that went with it. */
async function checkRecovery(
  app: App,
  write: RecordWrite & { record: RecordChange; id: ObjectId; filter: Filter },
): Promise<CheckedWrite> {
  const { collection, id, record } = write;
  const references = referencesOf(collection);
  const projection = Object.fromEntries(['_id', ...references.map(({ field }) => field)].map((name) => [name, 1]));
  const found = await app.db
    .collection<StoredDocument>(documentsName(collection))
    .findOne({ _id: id }, { ...app.db.confirmedReads, projection });
  const held = references.map(({ field }) => ({ [field]: found?.[field] ?? null }));
  const filter = held.length > 0 ? { $and: [write.filter, ...held] } : write.filter;
  const unset = [...(record.unset ?? []), ...(references.length > 0 ? [TRASHED_WITH] : [])];
  // It was referred to before, with whosever rights.
  const { checks } = await checkValues(app, { ...write, referrer: null }, [], (field) => [found?.[field]]);
  const brings = (await findReferences(app, collection)).some(({ onDelete }) => onDelete === 'trash');
  return {
    write: { ...write, filter, record: { ...record, unset } },
    checks: checks.map((check) => ({ ...check, refusal: () => Promise.resolve(goneReference(check.collection)) })),
    settled: brings ? { collection, id } : null,
  };
}

function goneReference({ name }: Collection): AppError {
  const text = `The document refers to one that is not in "${name}" any more: take that one back first`;
  return conflict('REFERENCE_MISSING', text);
}

async function checkRemoval(
  app: App,
  write: RecordWrite & { id: ObjectId },
  earlier: readonly RecordWrite[],
): Promise<CheckedWrite> {
  const { collection, id, referrer } = write;
  const checks: ReferenceCheck[] = [];
  let isSettled = false;
  for (const reference of await findReferences(app, collection)) {
    const referring = referringTo(reference, id);
    const stored = earlier.filter((each) => isInsertReferring(each, reference, id)).length;
    const isHeld = reference.onDelete === 'restrict' && !referrer;
    if (!isHeld && (stored > 0 || (await hasMatch(app, reference.collection, referring)))) {
      isSettled = true;
      if (reference.onDelete === 'restrict') checks.push(...(await holdersOf(app, write, reference, earlier)));
      continue;
    }
    checks.push({
      collection: reference.collection,
      filter: referring,
      matches: false,
      refusal: async () => (isHeld ? referredTo(app, reference, referring, stored) : null),
    });
  }
  return { write, checks, settled: isSettled ? { collection, id } : null };
}

/**
 * Checks that a document is kept from an end user's removal (`restrict`) only by documents that this user can do
 * something about: others could keep it for ever. Those lose the reference afterwards (settleReferences). Each check is
 * of one document, as a transaction cannot search among all that refer.
 */
async function holdersOf(
  app: App,
  { id, referrer }: RecordWrite & { id: ObjectId },
  reference: Reference,
  earlier: readonly RecordWrite[],
): Promise<ReferenceCheck[]> {
  const { collection, isList } = reference;
  const referring = referringTo(reference, id);
  const filter = await holdingFilter(app, reference, referrer!, isList ? [] : [referring]);
  if (!filter) return [];
  const holding = { ...referring, $and: filter };
  const written = earlier.filter((write) => write.collection._id.equals(collection._id)).map(writtenId);
  const other = await findHolder(app, collection, { ...holding, _id: { $nin: written } });
  return [...written, ...(other ? [other] : [])].map((_id) => ({
    collection,
    filter: { ...holding, _id },
    matches: false,
    refusal: () => Promise.resolve(heldByOwn()),
  }));
}

/** What the deleting user may do something about, as parts of a filter; null for nothing. */
async function holdingFilter(
  app: App,
  { collection, field }: Reference,
  referrer: Referrer,
  conditions: readonly Filter[],
): Promise<Filter[] | null> {
  const sight = await findSight(app, collection, referrer.caller);
  if (sight?.unnamed.has(field)) return null;
  try {
    const changeable = await changeableFilter(app, collection, referrer, conditions);
    return changeable === NOTHING ? null : [changeable ?? {}];
  } catch (error) {
    // Others can have made the user a member of too much.
    if (error instanceof AppError && error.code === 'TOO_MANY_MEMBERSHIPS') return null;
    throw error;
  }
}

/** One of the documents that match; null for none, and where others refer so often that looking takes too long. */
async function findHolder(app: App, collection: Collection, filter: Filter): Promise<ObjectId | null> {
  const options = { ...app.db.confirmedReads, projection: { _id: 1 }, maxTimeMS: app.config.queryTimeoutMs };
  try {
    return (await app.db.collection(documentsName(collection)).findOne(filter, options))?._id ?? null;
  } catch (error) {
    if (isTimeExceeded(error)) return null;
    throw error;
  }
}

/** The 409 for an end user, who learns neither how many documents refer nor where. */
function heldByOwn(): AppError {
  const message = 'Documents that you can change or delete refer to it: do that first';
  return conflict('DOCUMENT_REFERRED_TO', message, { details: [{ field: '_id', rule: 'onDelete', message }] });
}

function isInsertReferring(write: RecordWrite, { collection, field }: Reference, id: ObjectId): boolean {
  if (!('insert' in write) || !write.collection._id.equals(collection._id)) return false;
  return [write.insert[field]].flat().includes(id.toHexString());
}

/** The active documents that refer to one by a field. */
export function referringTo({ field }: Reference, id: ObjectId): Filter {
  return { [field]: id.toHexString(), isDeleted: false };
}

async function hasMatch(app: App, collection: Collection, filter: Filter): Promise<boolean> {
  const stored = app.db.collection<StoredDocument>(documentsName(collection));
  return (await stored.findOne(filter, { ...app.db.confirmedReads, projection: { _id: 1 } })) !== null;
}

async function referredTo(
  app: App,
  { collection, field }: Reference,
  filter: Filter,
  earlier: number,
): Promise<AppError | null> {
  const stored = app.db.collection<StoredDocument>(documentsName(collection));
  const count = (await stored.countDocuments(filter)) + earlier;
  if (count === 0) return null;
  const [documents, refer, them] = count === 1 ? ['document', 'refers', 'it'] : ['documents', 'refer', 'them'];
  const message = `${count} ${documents} of "${collection.name}" ${refer} to it by ${field}: change or remove ${them} first`;
  return conflict('DOCUMENT_REFERRED_TO', message, { details: [{ field, rule: 'onDelete', message }] });
}

/** A condition among the steps of a write. */
export type WriteCondition = Extract<WriteStep, { matches: boolean }>;

/** A check as a condition of a write. */
export function conditionOf({ collection, filter, matches }: ReferenceCheck): WriteCondition {
  return { collection: documentsName(collection), filter, matches };
}
