import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict } from '../../../errors.js';
import type { Exists } from '../../../platform/database/database.js';
import { findObjectId } from '../../../platform/ids.js';
import type { Referrer } from '../../access/access-rules.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { findCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { referencesOf } from '../../collections/references/reference.js';
import { withEvent } from '../../webhooks/outbox/outbox-field.js';
import { queueEvents } from '../../webhooks/outbox/queue-events.js';
import { openRemovalOfAttached } from './attached-files.js';
import type { StoredDocument } from './document.js';
import { imageBefore } from './image-before.js';
import { later, removed, type DecidedUpdate, type RecordWrite } from './record-update.js';
import { MAX_CHECKS, tooManyReferences } from './new-references.js';
import { openReferring, openReturning, TRASHED_WITH } from './referring-documents.js';

/** A document whose state is changed: trashed, taken back, or removed for good. */
export interface StateWrite {
  collection: Collection;
  id: ObjectId;
  /** Whether it is to be done; throws why it is refused. */
  admit: (stored: StoredDocument | null, exists: Exists) => stored is StoredDocument;
  /** With whose rights what refers to it is judged; null: the project's. */
  referrer?: Referrer | null;
  /** Writes of the same transaction that come before. */
  earlier?: readonly RecordWrite[];
}

/** Into the trash; 409 DOCUMENT_REFERRED_TO. `trashedWith`: the id of the document with which it comes back. */
export async function openTrashing(app: App, write: StateWrite, trashedWith?: string): Promise<DecidedUpdate> {
  const { collection, id, admit, referrer = null, earlier = [] } = write;
  const entry = await queueEvents(app, collection, 'delete');
  const referring = await openReferring(app, { collection, id, referrer, earlier });
  const now = app.clock.now();
  const keepsBefore = imageBefore(app, collection);
  const trashed = { isDeleted: true, deletedAt: new Date(now) };
  return {
    action: 'delete',
    follow: referring?.follow ?? [],
    apply: (document) => ({ ...document, ...trashed }),
    decide(stored, exists) {
      if (!admit(stored, exists)) return stored;
      referring?.require(exists);
      let next: StoredDocument = { ...stored, ...trashed, updatedAt: later(stored, now) };
      if (trashedWith !== undefined) next = withNote(next, TRASHED_WITH, trashedWith);
      return entry ? withEvent(next, keepsBefore(entry, stored)) : next;
    },
  };
}

/** Out of the trash; 409 REFERENCE_MISSING for one that refers to a document that is gone. */
export async function openRecovery(app: App, { collection, id, admit }: StateWrite): Promise<DecidedUpdate> {
  const entry = await queueEvents(app, collection, 'recover');
  const references = referencesOf(collection);
  const targets = new Map<string, string>();
  for (const { to } of references) {
    const target = await findCollection(app, collection.projectId, to);
    if (target) targets.set(to, documentsName(target));
  }
  const now = app.clock.now();
  const keepsBefore = imageBefore(app, collection);
  const back = { isDeleted: false, deletedAt: null };

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
    action: 'recover',
    follow: await openReturning(app, collection, id),
    apply: (document) => ({ ...document, ...back }),
    decide(stored, exists) {
      if (!admit(stored, exists)) return stored;
      requireReferred(stored, exists);
      let next: StoredDocument = { ...stored, ...back, updatedAt: later(stored, now) };
      if (references.length > 0) next = withNote(next, TRASHED_WITH, undefined);
      return entry ? withEvent(next, keepsBefore(entry, stored)) : next;
    },
  };
}

/** For good, with its files; 409 DOCUMENT_REFERRED_TO. With an event to tell a rest is left until that is relayed. */
export async function openRemoval(app: App, write: StateWrite): Promise<DecidedUpdate> {
  const { collection, id, admit, referrer = null, earlier = [] } = write;
  const entry = await queueEvents(app, collection, 'delete');
  const referring = await openReferring(app, { collection, id, referrer, earlier });
  const keepsBefore = imageBefore(app, collection);
  return {
    action: 'delete',
    follow: [...(referring?.follow ?? []), ...(await openRemovalOfAttached(app, collection, id))],
    apply: (document) => document,
    decide(stored, exists) {
      if (!admit(stored, exists)) return stored;
      referring?.require(exists);
      return removed(stored, entry && keepsBefore(entry, stored));
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
