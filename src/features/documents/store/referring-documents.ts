import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import { isTimeExceeded, type Exists, type WriteTurn } from '../../../platform/database/database.js';
import { jobTurn, type Enqueueable } from '../../../platform/jobs/job-queue.js';
import { changeableFilter, findSight, type Referrer } from '../../access/access-rules.js';
import { NOTHING } from '../../access/rules/compile-rule.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findReferences, type Reference } from '../../collections/references/reference.js';
import { AskOutside } from './ask-outside.js';
import { writtenId, type RecordWrite } from './record-update.js';

type Filter = Record<string, unknown>;

/** Among the service's notes in a document that was trashed because it refers to one that was: that one's id. */
export const TRASHED_WITH = 'trashedWith';

/** The document whose references are to be settled. */
export interface SettledDocument {
  projectId: string;
  collectionId: string;
  id: string;
}

/** The job that settles what refers to a document that went or came back. */
export const SETTLE_REFERENCES: Enqueueable<SettledDocument> & { name: string } = {
  name: 'documents.settleReferences',
};

interface Referred {
  collection: Collection;
  id: ObjectId;
  /** Who removes it; null for the project. */
  referrer: Referrer | null;
  /** Writes of the same transaction that come before. */
  earlier: readonly RecordWrite[];
}

/** The documents that refer to one, for the decision to trash or remove it. */
export interface ReferringDocuments {
  /** 409 DOCUMENT_REFERRED_TO where they keep it. */
  require(exists: Exists): void;
  /** The job that settles them, stored by the same transaction where there are any. */
  follow: readonly WriteTurn[];
}

/** Opens what refers to a document with an `onDelete` (writes.md 3); null where no field may. */
export async function openReferring(app: App, referred: Referred): Promise<ReferringDocuments | null> {
  const { collection, id, referrer } = referred;
  const references = await findReferences(app, collection);
  if (references.length === 0) return null;
  const holders = new Map<Reference, readonly Filter[]>();
  let settles = false;
  return {
    require(exists) {
      settles = false;
      for (const reference of references) {
        const name = documentsName(reference.collection);
        if (!exists(name, referringTo(reference, id))) continue;
        if (reference.onDelete === 'restrict') {
          if (!referrer) {
            throw new AskOutside(async () => {
              throw await referredTo(app, referred, reference);
            });
          }
          const found = holders.get(reference);
          if (!found) {
            throw new AskOutside(async () => {
              holders.set(reference, await holdersOf(app, { ...referred, referrer }, reference));
            });
          }
          if (found.some((holder) => exists(name, holder))) throw heldByOwn();
        }
        settles = true;
      }
    },
    follow: [settlingTurn(app, collection, id, () => settles)],
  };
}

/** The job that takes back what was trashed with a document, as a turn after the one that takes it back. */
export async function openReturning(app: App, collection: Collection, id: ObjectId): Promise<readonly WriteTurn[]> {
  const references = (await findReferences(app, collection)).filter(({ onDelete }) => onDelete === 'trash');
  if (references.length === 0) return [];
  const isWanted = (exists: Exists): boolean =>
    references.some((reference) => exists(documentsName(reference.collection), trashedWith(reference, id)));
  return [settlingTurn(app, collection, id, isWanted)];
}

function settlingTurn(
  app: App,
  { _id, projectId }: Collection,
  id: ObjectId,
  isWanted: (exists: Exists) => boolean,
): WriteTurn {
  const ids = { projectId: projectId.toHexString(), collectionId: _id.toHexString(), id: id.toHexString() };
  return jobTurn(app, SETTLE_REFERENCES, ids, isWanted);
}

/** The active documents that refer to one by a field. */
export function referringTo({ field }: Reference, id: ObjectId): Filter {
  return { [field]: id.toHexString(), isDeleted: false };
}

/** The documents that were trashed with one that they refer to by a field, or with another one. */
export function trashedWith(reference: Reference, id: ObjectId): Filter {
  return { ...referringTo(reference, id), isDeleted: true, [`${HIDDEN_FIELD}.${TRASHED_WITH}`]: { $exists: true } };
}

/**
 * A document is kept from an end user's removal (`restrict`) only by documents that this user can do something about:
 * others could keep it for ever. Those lose the reference afterwards (settleReferences). Each filter is of one
 * document, as a transaction cannot search among all that refer.
 */
async function holdersOf(
  app: App,
  { id, referrer, earlier }: Referred & { referrer: Referrer },
  reference: Reference,
): Promise<Filter[]> {
  const { collection, isList } = reference;
  const referring = referringTo(reference, id);
  const filter = await holdingFilter(app, reference, referrer, isList ? [] : [referring]);
  if (!filter) return [];
  const holding = { ...referring, $and: filter };
  const written = earlier.filter((write) => write.collection._id.equals(collection._id)).map(writtenId);
  const other = await findHolder(app, collection, { ...holding, _id: { $nin: written } });
  return [...written, ...(other ? [other] : [])].map((_id) => ({ ...holding, _id }));
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

/** The 409 for the project, once it is known that there are some. */
async function referredTo(app: App, { id, earlier }: Referred, reference: Reference): Promise<AppError> {
  const { collection, field } = reference;
  const stored = await app.db.collection(documentsName(collection)).countDocuments(referringTo(reference, id));
  const added = earlier.filter((write) => isInsertReferring(write, reference, id)).length;
  const count = Math.max(1, stored + added);
  const [documents, refer, them] = count === 1 ? ['document', 'refers', 'it'] : ['documents', 'refer', 'them'];
  const message = `${count} ${documents} of "${collection.name}" ${refer} to it by ${field}: change or remove ${them} first`;
  return conflict('DOCUMENT_REFERRED_TO', message, { details: [{ field, rule: 'onDelete', message }] });
}

function isInsertReferring(write: RecordWrite, { collection, field }: Reference, id: ObjectId): boolean {
  if (!('insert' in write) || !write.collection._id.equals(collection._id)) return false;
  return [write.insert[field]].flat().includes(id.toHexString());
}
