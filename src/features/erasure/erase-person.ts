import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError, conflict, invalid } from '../../errors.js';
import type { Collection } from '../collections/collection.js';
import { listCollections } from '../collections/collection-store.js';
import type { OnDelete } from '../collections/fields/constraints/constraint.js';
import type { Field } from '../collections/fields/field.js';
import { USERS } from '../collections/users-collection.js';
import { visibleDocuments } from '../documents/store/document.js';
import { documentStore } from '../documents/store/document-store.js';
import { deleteDocument } from '../documents/write/change-state.js';
import { deleteFile } from '../files/delete-file.js';
import { fileStore } from '../files/file.js';
import { mailLogStore } from '../mail/mail-log.js';
import type { Project } from '../projects/project.js';
import { deleteUser } from '../users/accounts/delete-user.js';
import { disableUser } from '../users/accounts/change-user.js';
import type { User } from '../users/user.js';

const BATCH = 200;

/** Where data of a person is, and how much of it. */
export interface PersonalData {
  kind: 'documents' | 'files' | 'mail logs';
  /** The collection of documents, with the field that names the person. */
  place: string;
  count: number;
  /** Of a field that refers to the user: what becomes of its documents when the account goes. */
  onDelete?: OnDelete;
}

export interface Erasure {
  removed: PersonalData[];
  /** Documents of others that name the person; they stay, or go as their field's `onDelete` says. */
  mentioned: PersonalData[];
}

interface Place {
  collection: Collection;
  field: string;
  onDelete?: OnDelete | undefined;
}

export interface ErasureOptions {
  /** Further places, `<collection>.<field>`, whose documents are the person's. */
  also?: readonly string[];
  dryRun?: boolean;
  stop?: AbortSignal;
}

/**
 * Deletes permanently what a user owns (documents by their owner field or a stamp, in the trash too; uploaded files;
 * logs of mail to the address alone), and the account last: what was broken off is carried on by calling it again. The
 * account is disabled first, so that nothing is added on the way. 400 INVALID_FIELD for a place that there is not; 409
 * DOCUMENT_REFERRED_TO where others keep the account, then before anything goes, or a document of theirs.
 */
export async function erasePerson(
  app: App,
  project: Project,
  user: User,
  { also = [], dryRun = false, stop }: ErasureOptions = {},
): Promise<Erasure> {
  const collections = (await listCollections(app, project._id)).filter(({ name }) => name !== USERS);
  const own = [...collections.flatMap(ownPlaces), ...also.map((place) => requirePlace(collections, place))];
  const isOwn = ({ collection, field }: Place): boolean =>
    own.some((place) => place.collection === collection && place.field === field);
  const naming = collections.flatMap(namingPlaces).filter((place) => !isOwn(place));
  const mentioned: PersonalData[] = [];
  for (const place of naming) mentioned.push(await countDocuments(app, place, user._id));
  if (!dryRun) {
    for (const place of naming) await requireFree(app, place, user._id);
    await disableUser(app, project, user);
  }
  const removed = [await removeFiles(app, project, user, dryRun, stop), await removeLogs(app, project, user, dryRun)];
  removed.push(...(await removeOwn(app, own, user._id, dryRun, stop)));
  if (!dryRun) await deleteUser(app, project, user);
  const isSome = ({ count }: PersonalData): boolean => count > 0;
  return { removed: removed.filter(isSome), mentioned: mentioned.filter(isSome) };
}

/** The fields by which a collection says whose a document is. */
function ownPlaces(collection: Collection): Place[] {
  const stamped = collection.fields.filter(({ stamp }) => stamp !== undefined).map(({ name }) => name);
  const names = new Set([...(collection.rls ? [collection.rls.ownerField] : []), ...stamped]);
  return [...names].map((field) => ({ collection, field }));
}

/** The fields that refer to users without saying whose the document is. */
function namingPlaces(collection: Collection): Place[] {
  const refers = ({ type, ref, items }: Field): boolean =>
    (type === 'Ref' && ref === USERS) || (items?.type === 'Ref' && items.ref === USERS);
  return collection.fields
    .filter(refers)
    .map(({ name, onDelete, items }) => ({ collection, field: name, onDelete: onDelete ?? items?.onDelete }));
}

/** 409 where a reference of a document that stays keeps the account. */
async function requireFree(app: App, { collection, field, onDelete }: Place, userId: ObjectId): Promise<void> {
  if (onDelete !== 'restrict') return;
  const count = await documentStore(app, collection).countDocuments({
    [field]: userId.toHexString(),
    isDeleted: false,
  });
  if (count === 0) return;
  const place = `${collection.name}.${field}`;
  const documents = count === 1 ? '1 document refers' : `${count} documents refer`;
  throw conflict(
    'DOCUMENT_REFERRED_TO',
    `${documents} to the user by ${place}, which keeps the account (onDelete: restrict): change what they say, or delete them too with --also ${place}. Nothing was deleted.`,
  );
}

function requirePlace(collections: readonly Collection[], place: string): Place {
  const [name, ...path] = place.split('.');
  const collection = collections.find((each) => each.name === name);
  const isKnown = collection?.mode === 'flexible' || collection?.fields.some((field) => field.name === path[0]);
  if (!collection || path.length === 0 || !isKnown) {
    throw invalid('INVALID_FIELD', `"${place.slice(0, 100)}" is no field of a collection: write posts.author`);
  }
  return { collection, field: path.join('.') };
}

function placeFilter({ field }: Place, userId: ObjectId): Record<string, unknown> {
  return { [field]: userId.toHexString(), ...visibleDocuments(true) };
}

async function countDocuments(app: App, place: Place, userId: ObjectId): Promise<PersonalData> {
  const count = await documentStore(app, place.collection).countDocuments(placeFilter(place, userId));
  const { collection, field, onDelete } = place;
  return { kind: 'documents', place: `${collection.name}.${field}`, count, ...(onDelete && { onDelete }) };
}

/**
 * Deletes the documents of all places, those that others keep once the others are gone: in rounds, as long as one of
 * them removes any. 409 DOCUMENT_REFERRED_TO where documents that stay keep some.
 */
async function removeOwn(
  app: App,
  places: readonly Place[],
  userId: ObjectId,
  dryRun: boolean,
  stop: AbortSignal | undefined,
): Promise<PersonalData[]> {
  const removed: PersonalData[] = [];
  for (const place of places) removed.push(await countDocuments(app, place, userId));
  if (dryRun) return removed;
  for (const data of removed) data.count = 0;
  for (;;) {
    let count = 0;
    let kept: AppError | null = null;
    for (const [at, place] of places.entries()) {
      const round = await removeDocuments(app, place, userId, stop);
      removed[at]!.count += round.count;
      count += round.count;
      kept ??= round.kept;
    }
    if (kept === null) return removed;
    if (count === 0) throw kept;
  }
}

/** Deletes what can be deleted of a place: how many, and why another one is kept. */
async function removeDocuments(
  app: App,
  place: Place,
  userId: ObjectId,
  stop: AbortSignal | undefined,
): Promise<{ count: number; kept: AppError | null }> {
  const { collection } = place;
  let count = 0;
  let kept: AppError | null = null;
  // By ascending ids, so that one which cannot be deleted at this moment does not come again.
  let after: ObjectId | null = null;
  for (;;) {
    stop?.throwIfAborted();
    const ids = await findIdsAfter(app, place, userId, after);
    if (ids.length === 0) return { count, kept };
    after = ids.at(-1)!;
    for (const id of ids) {
      try {
        count += await unlessGone(() => deleteDocument(app, { collection, writer: null }, id.toHexString()));
      } catch (error) {
        if (!(error instanceof AppError && error.code === 'DOCUMENT_REFERRED_TO')) throw error;
        kept ??= error;
      }
    }
  }
}

async function findIdsAfter(app: App, place: Place, userId: ObjectId, after: ObjectId | null): Promise<ObjectId[]> {
  const filter = { ...placeFilter(place, userId), ...(after && { _id: { $gt: after } }) };
  const found = documentStore(app, place.collection).find(filter).project({ _id: 1 }).sort({ _id: 1 }).limit(BATCH);
  return ((await found.toArray()) as { _id: ObjectId }[]).map(({ _id }) => _id);
}

async function removeFiles(
  app: App,
  project: Project,
  { _id }: User,
  dryRun: boolean,
  stop: AbortSignal | undefined,
): Promise<PersonalData> {
  const filter = { projectId: project._id, uploadedBy: _id.toHexString(), state: 'confirmed' } as const;
  const data: PersonalData = { kind: 'files', place: 'files', count: await fileStore(app).countDocuments(filter) };
  if (dryRun || data.count === 0) return data;
  let count = 0;
  for await (const { path } of fileStore(app).find(filter)) {
    stop?.throwIfAborted();
    count += await unlessGone(() => deleteFile(app, project, path));
  }
  return { ...data, count };
}

/** Logs of mail to this address alone; that of one which is still to be sent stays until then. */
async function removeLogs(app: App, project: Project, { email }: User, dryRun: boolean): Promise<PersonalData> {
  const filter = { projectId: project._id, to: [email ?? ''], status: { $ne: 'queued' as const } };
  const count = await mailLogStore(app).countDocuments(filter);
  if (!dryRun && count > 0) await mailLogStore(app).deleteMany(filter);
  return { kind: 'mail logs', place: 'mail logs', count };
}

/** 1 if deleted, 0 if another request deleted it first. */
async function unlessGone(remove: () => Promise<unknown>): Promise<number> {
  try {
    await remove();
    return 1;
  } catch (error) {
    if (error instanceof AppError && error.kind === 'missing') return 0;
    throw error;
  }
}
