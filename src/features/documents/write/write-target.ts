import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid, missing, type AppError } from '../../../errors.js';
import { findObjectId } from '../../../platform/ids.js';
import { requireWriter, type Referrer, type Writer } from '../../access/access-rules.js';
import { type Caller, tenantOfCaller } from '../../access/caller.js';
import { onBehalfOf } from '../../access/key-access.js';
import type { Collection } from '../../collections/collection.js';
import { peekCollection, requireCollection } from '../../collections/collection-store.js';
import { hookedCaller, type HookedCaller } from '../../hooks/before-calls.js';
import { lookAt } from '../store/commit-writes.js';
import type { StoredDocument } from '../store/document.js';
import type { Access, RouteContext } from '../../../http/routes/route.js';
import { WRITES_DOCUMENTS_DESCRIPTION } from '../../access/describe-access.js';
import { callerOf, authenticateKey } from '../../access/require-key.js';

/** The place of a write and its writer. */
export interface WriteTarget {
  collection: Collection;
  writer: Writer;
  /** With whose rights it refers to documents, where these are not the writer's. */
  referrer?: Referrer | undefined;
  /** The caller, where the project's own code may have to be asked about what is written. */
  hooked?: HookedCaller;
}

/**
 * The collection a caller may write to: 404 for an unknown one, 403 or 401 when this caller may not write at all
 * (rest-api.md 5). A promise only when it takes time.
 */
export function requireWriteTarget(
  app: App,
  caller: Caller,
  collectionName: string,
): WriteTarget | Promise<WriteTarget> {
  const collection = peekCollection(app, caller.project._id, collectionName);
  const isKnown = collection !== undefined && caller.key.type === 'secret';
  return isKnown ? { collection, writer: null, hooked: hookedCaller(caller) } : openTarget(app, caller, collectionName);
}

async function openTarget(app: App, caller: Caller, collectionName: string): Promise<WriteTarget> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  return { collection, writer: await requireWriter(app, collection, caller), hooked: hookedCaller(caller) };
}

/** 400 INVALID_ID for anything but 24 hexadecimal digits. */
export function requireDocumentId(text: string): ObjectId {
  const id = findObjectId(text);
  if (!id) throw invalid('INVALID_ID', 'A document id has 24 hexadecimal digits');
  return id;
}

/** A document as its writer may see it, who has changed it before: null where that may be no more, or there is none. */
export async function findReadable(
  app: App,
  { collection, writer }: WriteTarget,
  id: ObjectId,
): Promise<StoredDocument | null> {
  const sets = await writer?.openSets();
  return lookAt(app, collection, id, (stored, exists) => {
    if (!stored || writer?.ownerField !== null) return stored;
    writer.requireKnown('read');
    return writer.admits('read', stored, sets!(exists)) ? stored : null;
  });
}

/** findReadable of an active document; 404 in place of null. */
export async function readWritten(app: App, place: WriteTarget, id: ObjectId): Promise<StoredDocument> {
  const found = await findReadable(app, place, id);
  if (found?.isDeleted !== false) throw documentNotFound();
  return found;
}

export function documentNotFound(): AppError {
  return missing('DOCUMENT_NOT_FOUND', 'There is no document with this id in the collection');
}

interface ToTarget {
  /** On behalf of the end user, else of the key. */
  app: App;
  target: WriteTarget;
}

/** The rule of writers for the collection that the path names (rest-api.md 5); 404 when there is none. */
export const WRITES_DOCUMENTS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS_DESCRIPTION,
  admit: authenticateKey,
  give: giveTarget,
};

/** The same for a write that answers the document: it asks for room before the write, never after it. */
export const WRITES_AND_SHOWS: Access<ToTarget> = {
  ...WRITES_DOCUMENTS,
  give(app, ctx) {
    const given = giveTarget(app, ctx);
    const room = (to: ToTarget): ToTarget | Promise<ToTarget> =>
      app.replies.room(tenantOfCaller(callerOf(ctx)))?.then(() => to) ?? to;
    return given instanceof Promise ? given.then(room) : room(given);
  },
};

function giveTarget(app: App, ctx: RouteContext): ToTarget | Promise<ToTarget> {
  const caller = callerOf(ctx);
  const target = requireWriteTarget(app, caller, ctx.params.collectionName!);
  const acting = onBehalfOf(app, caller);
  if (target instanceof Promise) return target.then((opened) => ({ app: acting, target: opened }));
  return { app: acting, target };
}
