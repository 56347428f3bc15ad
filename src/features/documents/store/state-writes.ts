import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { AppError, conflict } from '../../../errors.js';
import type { Exists, WriteTurn } from '../../../platform/database/database.js';
import { findObjectId } from '../../../platform/ids.js';
import { jobTurn, type Enqueueable } from '../../../platform/jobs/job-queue.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import type { Referrer } from '../../access/access-rules.js';
import { cutoffTurn } from '../../access/token-cutoff.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { findCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { findReferences, referencesOf, type Reference } from '../../collections/references/reference.js';
import { USERS } from '../../collections/users-collection.js';
import { AskOutside, type DecidedWrite, lookAt } from './commit-writes.js';
import { openRemovalOfAttached } from './attached-files.js';
import { findListeners } from '../../webhooks/events/queue-events.js';
import { nextVersion, type StoredDocument } from './document.js';
import { MAX_CHECKS, tooManyReferences } from './new-references.js';
import { openReferring, openReturning, startCascade, TRASHED_WITH, type Cascade } from './referring-documents.js';

/** A document whose state is changed: trashed, taken back, or removed for good. */
export interface StateWrite {
  collection: Collection;
  id: ObjectId;
  /** Whether it is to be done; throws why it is refused. */
  admit: (stored: StoredDocument | null, exists: Exists) => stored is StoredDocument;
  /** With whose rights what refers to it is judged; null: the project's. */
  referrer?: Referrer | null;
  /** Writes of the same transaction that come before. */
  earlier?: readonly DecidedWrite[];
  /** Cascaded changes of the transaction, shared by all of its writes. */
  cascade?: Cascade | undefined;
  /** The document is already invisible: no events, and references do not protect it. */
  isUnseen?: boolean;
}

export interface Removal extends StateWrite {
  /** For good, with its files. */
  permanent?: boolean | undefined;
  /** The id of the document with which it comes back from the trash. */
  trashedWith?: string;
}

/** Into the trash, or for good; 409 DOCUMENT_REFERRED_TO. */
export async function openRemoval(app: App, write: Removal): Promise<DecidedWrite> {
  const { collection, id, admit, permanent, trashedWith, isUnseen = false } = write;
  const listeners = isUnseen ? null : await findListeners(app, collection, 'delete');
  const { requireFree, also, follow } = await openReferringTo(app, write);
  const ends = permanent
    ? [...endOfAccount(app, collection, id), ...(await openRemovalOfAttached(app, collection, id))]
    : endOfTokens(app, collection, id);
  const deletedAt = new Date(app.clock.now());
  return {
    ...{ collection, id, action: 'delete', listeners, also, follow: [...follow, ...ends] },
    decide(stored, exists, read) {
      if (!admit(stored, exists)) return stored;
      requireFree(exists, read);
      if (permanent) return null;
      const trashed = withNote({ ...stored, isDeleted: true, deletedAt }, TRASHED_WITH, trashedWith);
      return nextVersion(app, collection, stored, trashed);
    },
  };
}

/** Out of the trash; 409 REFERENCE_MISSING for one that refers to a document that is gone. */
export async function openRecovery(app: App, { collection, id, admit }: StateWrite): Promise<DecidedWrite> {
  const listeners = await findListeners(app, collection, 'recover');
  const references = referencesOf(collection);
  const targets = new Map<string, string>();
  for (const { to } of references) {
    const target = await findCollection(app, collection.projectId, to);
    if (target) targets.set(to, documentsName(target));
  }

  function requireReferred(stored: StoredDocument, exists: Exists): void {
    const checked = new Set<string>();
    for (const { field, to } of references) {
      for (const value of [stored[field]].flat()) {
        const isOwn = to === collection.name && value === id.toHexString();
        if (typeof value !== 'string' || isOwn || checked.has(`${to} ${value}`)) continue;
        if (checked.add(`${to} ${value}`).size > MAX_CHECKS) throw tooManyReferences();
        const target = targets.get(to);
        const filter = { _id: findObjectId(value), isDeleted: false };
        if (target === undefined || !exists(target, filter, true)) throw goneReference(to);
      }
    }
  }

  return {
    ...{ collection, id, action: 'recover', listeners },
    follow: await openReturning(app, collection, id),
    decide(stored, exists) {
      if (!admit(stored, exists)) return stored;
      requireReferred(stored, exists);
      const back = withNote({ ...stored, isDeleted: false, deletedAt: null }, TRASHED_WITH, undefined);
      return nextVersion(app, collection, stored, back);
    },
  };
}

/** The job that removes the sessions, identities and passkeys of an account that is gone. */
export const REMOVE_WAYS_IN: Enqueueable<{ projectId: string; userId: string }> & { name: string } = {
  name: 'users.removeWaysIn',
};

/** Where the document is a user, whatever removes it: the end of what opens the account. */
function endOfAccount(app: App, collection: Collection, id: ObjectId): WriteTurn[] {
  const ids = { projectId: collection.projectId.toHexString(), userId: id.toHexString() };
  const tokens = endOfTokens(app, collection, id);
  return tokens.length === 0 ? [] : [...tokens, jobTurn(app, REMOVE_WAYS_IN, ids)];
}

/** The end of a user's access tokens, which are good without a look at the account. */
function endOfTokens(app: App, { name, projectId }: Collection, id: ObjectId): WriteTurn[] {
  // Ahead, as a token may have been signed by a clock that is.
  const before = new Date(app.clock.now() + CLOCKS_DIFFER_MS);
  return name === USERS ? [cutoffTurn(app, projectId, id, { before })] : [];
}

/** Opens what refers to the document; for a writer who would be refused at this moment nothing is prepared. */
async function openReferringTo(app: App, write: StateWrite): ReturnType<typeof openReferring> {
  const { collection, id, referrer = null, earlier = [], isUnseen = false } = write;
  const isPrepared = !referrer || earlier.some((each) => each.id.equals(id)) || (await isAdmitted(app, write));
  const cascade = isPrepared ? (write.cascade ?? startCascade()) : { ...startCascade(), left: 0 };
  return openReferring(app, { collection, id, referrer, earlier, cascade, isUnseen }, async (reference, _id) => {
    const step = { collection, id, reference, isBack: false };
    const { decide, ...cascaded } = await openCascade(app, step, _id, { earlier, cascade });
    return {
      ...cascaded,
      decide(stored, ...asking) {
        try {
          return decide(stored, ...asking);
        } catch (error) {
          // It is left to the job, which says why.
          if (error instanceof AppError || error instanceof AskOutside) return stored;
          throw error;
        }
      },
    };
  });
}

async function isAdmitted(app: App, { collection, id, admit }: StateWrite): Promise<boolean> {
  if ((await findReferences(app, collection)).length === 0) return true;
  try {
    return await lookAt(app, collection, id, admit);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return false;
  }
}

/** A document that went or came back, with a reference to it. */
export interface CascadeStep {
  collection: Collection;
  id: ObjectId;
  reference: Reference;
  isBack: boolean;
}

/** What `onDelete` asks of one document that refers to another, as long as it does and that one is gone, or back. */
export async function openCascade(
  app: App,
  { collection: referred, id, reference, isBack }: CascadeStep,
  _id: ObjectId,
  beside: Pick<StateWrite, 'earlier' | 'cascade'> = {},
): Promise<DecidedWrite> {
  const { collection, field, onDelete } = reference;
  const text = id.toHexString();
  const isAsked = (stored: StoredDocument): boolean => {
    if (![stored[field]].flat().includes(text)) return false;
    const notes = stored[HIDDEN_FIELD] as Record<string, unknown> | undefined;
    return isBack ? stored.isDeleted && notes?.[TRASHED_WITH] !== undefined : !stored.isDeleted;
  };
  const isGone = (exists: Exists): boolean => !exists(documentsName(referred), { _id: id, isDeleted: false });
  const admit = (stored: StoredDocument | null, exists: Exists): stored is StoredDocument =>
    stored !== null && isAsked(stored) && (isBack || isGone(exists));
  const write = { collection, id: _id, admit, ...beside };
  const removal = { ...write, permanent: onDelete === 'remove', trashedWith: text };
  const open = (): Promise<DecidedWrite> => {
    if (isBack) return openRecovery(app, write);
    const removes = onDelete === 'remove' || onDelete === 'trash';
    return removes ? openRemoval(app, removal) : openClearing(app, write, reference, text);
  };
  return { ...(await open()), cascaded: cascadeAction({ reference, isBack }) };
}

/** The word for what is done to the documents that refer. */
export function cascadeAction({ reference, isBack }: Pick<CascadeStep, 'reference' | 'isBack'>): string {
  if (isBack) return 'recover';
  return reference.onDelete === 'restrict' ? 'unset' : reference.onDelete!;
}

/** The reference is taken out. */
async function openClearing(
  app: App,
  { collection, id, admit }: StateWrite,
  { field, isList }: Reference,
  referred: string,
): Promise<DecidedWrite> {
  const listeners = await findListeners(app, collection, 'update');
  return {
    ...{ collection, id, action: 'update', listeners },
    decide(stored, exists) {
      if (!admit(stored, exists)) return stored;
      const { [field]: held, ...others } = stored;
      const left = isList && [held].flat().filter((value) => value !== referred);
      return nextVersion(app, collection, stored, { ...(others as StoredDocument), ...(left && { [field]: left }) });
    },
  };
}

/** The document with another note of the service, or without it. */
function withNote(document: StoredDocument, name: string, value: unknown): StoredDocument {
  const notes = document[HIDDEN_FIELD] as Record<string, unknown> | undefined;
  if (value === undefined && notes?.[name] === undefined) return document;
  const { [name]: _, ...others } = notes ?? {};
  return { ...document, [HIDDEN_FIELD]: value === undefined ? others : { ...others, [name]: value } };
}

function goneReference(to: string): Error {
  const text = `The document refers to one that is not in "${to}" any more: take that one back first`;
  return conflict('REFERENCE_MISSING', text);
}
