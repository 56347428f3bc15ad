import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import { isTimeExceeded, type Exists, type ReadFields, type WriteTurn } from '../../../platform/database/database.js';
import { jobTurn, type Enqueueable } from '../../../platform/jobs/job-queue.js';
import {
  changeableFilter,
  findVisibility,
  openChangeable,
  type Admitted,
  type Referrer,
} from '../../access/access-rules.js';
import { NOTHING } from '../../access/rules/compile-rule.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findReferences, type Reference } from '../../collections/references/reference.js';
import { AskOutside, type DecidedWrite } from './commit-writes.js';

type Filter = Record<string, unknown>;

/** Among the service's notes in a document that was trashed because it refers to one that was: that one's id. */
export const TRASHED_WITH = 'trashedWith';

/** The document whose referring documents are changed. */
export interface CascadePayload {
  projectId: string;
  collectionId: string;
  id: string;
}

/** The job that applies `onDelete` after a document is deleted or restored. */
export const CASCADE_REFERENCES: Enqueueable<CascadePayload> & { name: string } = {
  name: 'documents.cascadeReferences',
};

/** Changes of one transaction to documents that refer to the requested ones. */
export interface Cascade {
  /** How many documents more; a reference by which more documents refer is left to the job. */
  left: number;
  /** Documents already handled, by collection, id and field. */
  readonly known: Set<string>;
}

export function startCascade(): Cascade {
  return { left: 100, known: new Set() };
}

interface Referred {
  collection: Collection;
  id: ObjectId;
  /** Who removes it; null for the project. */
  referrer: Referrer | null;
  /** Writes of the same transaction that come before. */
  earlier: readonly Pick<DecidedWrite, 'collection' | 'id'>[];
  cascade: Cascade;
  /** The document is already invisible: references do not protect it. */
  isUnseen: boolean;
}

/** The documents that refer to one, for the decision to trash or remove it. */
interface ReferringDocuments {
  /** 409 DOCUMENT_REFERRED_TO where they keep it. */
  requireFree: (this: void, exists: Exists, read: ReadFields) => void;
  /** What their references ask, by the same transaction. */
  also: readonly DecidedWrite[];
  /** The job that changes the others, stored by the same transaction where there are any. */
  follow: readonly WriteTurn[];
}

/** Opens what refers to a document with an `onDelete` (writes.md 3); `apply` makes the write for one. */
export async function openReferring(
  app: App,
  referred: Referred,
  apply: (reference: Reference, id: ObjectId) => Promise<DecidedWrite>,
): Promise<ReferringDocuments> {
  const { collection, id, referrer, isUnseen } = referred;
  const references = await findReferences(app, collection);
  const holders = new Map<Reference, Holders>();
  const next: DecidedWrite[] = [];
  for (const reference of references.filter(cascades)) {
    for (const _id of await plannedOf(app, referred, reference)) next.push(await apply(reference, _id));
  }
  const isLeft = (exists: Exists): boolean =>
    !exists(documentsName(collection), { _id: id, isDeleted: false }) &&
    references.some((each) => cascades(each) && exists(documentsName(each.collection), referringTo(each, id)));
  return {
    requireFree(exists, read) {
      if (isUnseen) return;
      for (const reference of references) {
        const name = documentsName(reference.collection);
        if (reference.onDelete !== 'restrict' || !exists(name, referringTo(reference, id))) continue;
        if (!referrer) {
          throw new AskOutside(async () => {
            throw await referredTo(app, id, reference);
          });
        }
        const found = holders.get(reference);
        if (!found) {
          throw new AskOutside(async () => {
            holders.set(reference, await findHolders(app, { ...referred, referrer }, reference));
          });
        }
        const holds = (holder: ObjectId): boolean => {
          const document = read(name, holder, found.fields);
          return [document?.[reference.field]].flat().includes(id.toHexString()) && found.admits(document, exists);
        };
        if (found.ids.some(holds)) throw heldByOwn();
      }
    },
    // Those that refer to these come after all of them.
    also: [...next, ...next.flatMap(({ also = [] }) => also)],
    follow: references.length > 0 ? [cascadeTurn(app, collection, id, isLeft)] : [],
  };
}

/** A reference that did not keep the document is cleared, unless that would leave one that violates its schema. */
export function cascades({ onDelete, isRequired }: Reference): boolean {
  return onDelete !== 'restrict' || !isRequired;
}

function writtenIn({ _id }: Collection, writes: Referred['earlier']): ObjectId[] {
  return writes.filter(({ collection }) => collection._id.equals(_id)).map(({ id }) => id);
}

/** Those that refer by a field, or may by then, where the transaction has room for all of them. */
async function plannedOf(app: App, { id, earlier, cascade }: Referred, reference: Reference): Promise<ObjectId[]> {
  const { left, known } = cascade;
  const { collection, field } = reference;
  if (left === 0) return [];
  const found = await app.db
    .collection<{ _id: ObjectId }>(documentsName(collection))
    .find(referringTo(reference, id), app.db.confirmedReads)
    .project<{ _id: ObjectId }>({ _id: 1 })
    .limit(left + 1)
    .toArray();
  const written = writtenIn(collection, earlier);
  if (found.length + written.length > left) return [];
  const keyOf = (_id: ObjectId): string => `${collection._id.toHexString()} ${_id.toHexString()} ${field}`;
  const fresh = [...found.map(({ _id }) => _id), ...written].filter((_id) => {
    const isKnown = known.has(keyOf(_id));
    known.add(keyOf(_id));
    return !isKnown;
  });
  cascade.left -= fresh.length;
  return fresh;
}

/** The job that takes back what was trashed with a document, as a turn after the one that takes it back. */
export async function openReturning(app: App, collection: Collection, id: ObjectId): Promise<readonly WriteTurn[]> {
  const references = (await findReferences(app, collection)).filter(({ onDelete }) => onDelete === 'trash');
  if (references.length === 0) return [];
  const isWanted = (exists: Exists): boolean =>
    references.some((reference) => exists(documentsName(reference.collection), trashedWith(reference, id)));
  return [cascadeTurn(app, collection, id, isWanted)];
}

function cascadeTurn(
  app: App,
  { _id, projectId }: Collection,
  id: ObjectId,
  isWanted: (exists: Exists) => boolean,
): WriteTurn {
  const ids = { projectId: projectId.toHexString(), collectionId: _id.toHexString(), id: id.toHexString() };
  return jobTurn(app, CASCADE_REFERENCES, ids, isWanted);
}

/** The active documents that refer to one by a field. */
export function referringTo({ field }: Reference, id: ObjectId): Filter {
  return { [field]: id.toHexString(), isDeleted: false };
}

/** The documents that were trashed with one that they refer to by a field, or with another one. */
export function trashedWith(reference: Reference, id: ObjectId): Filter {
  return { ...referringTo(reference, id), isDeleted: true, [`${HIDDEN_FIELD}.${TRASHED_WITH}`]: { $exists: true } };
}

/** Documents that may keep one that they refer to, if they still do and the user may still change or delete them. */
interface Holders extends Admitted {
  ids: readonly ObjectId[];
}

/**
 * A document is kept from an end user's removal (`restrict`) only by documents that this user can do something about:
 * others could keep it for ever. Those lose the reference afterwards. One of them is looked for here, as a transaction
 * cannot search among all that refer.
 */
async function findHolders(
  app: App,
  { id, referrer, earlier }: Referred & { referrer: Referrer },
  reference: Reference,
): Promise<Holders> {
  const { collection, field, isList } = reference;
  const { fields, admits } = await openChangeable(app, collection, referrer.caller);
  const holders = { fields: new Set([...fields, field]), admits };
  const visibility = await findVisibility(app, collection, referrer.caller);
  if (visibility?.restricted.has(field)) return { ...holders, ids: [] };
  const written = writtenIn(collection, earlier);
  const referring = referringTo(reference, id);
  const filter = await holdingFilter(app, reference, referrer, isList ? [] : [referring]);
  const wanted = { ...referring, $and: filter, _id: { $nin: written } };
  const other = filter && (await findHolder(app, collection, wanted));
  return { ...holders, ids: [...written, ...(other ? [other] : [])] };
}

/** What the deleting user may do something about, as parts of a filter; null for nothing. */
async function holdingFilter(
  app: App,
  { collection }: Reference,
  { caller }: Referrer,
  conditions: readonly Filter[],
): Promise<Filter[] | null> {
  try {
    const changeable = await changeableFilter(app, collection, caller, conditions);
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

/** The 409 for the project, once it is known that there are some. */
async function referredTo(app: App, id: ObjectId, reference: Reference): Promise<AppError> {
  const { collection, field } = reference;
  // Those of the same transaction do not count yet.
  const stored = await app.db.collection(documentsName(collection)).countDocuments(referringTo(reference, id));
  const count = Math.max(1, stored);
  const [documents, refer, them] = count === 1 ? ['document', 'refers', 'it'] : ['documents', 'refer', 'them'];
  const message = `${count} ${documents} of "${collection.name}" ${refer} to it by ${field}: change or remove ${them} first`;
  return conflict('DOCUMENT_REFERRED_TO', message, { details: [{ field, rule: 'onDelete', message }] });
}
