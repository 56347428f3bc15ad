import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { conflict, missing, type AppError } from '../../errors.js';
import type { Database, WriteTurn } from '../../platform/database/database.js';
import { findObjectId } from '../../platform/ids.js';
import { cutoffTurn } from '../access/token-cutoff.js';
import { documentsName } from '../collections/collection.js';
import { findCollection, requireCollection } from '../collections/collection-store.js';
import { HIDDEN_FIELD } from '../collections/fields/field.js';
import { addIndexes } from '../collections/indexes/document-indexes.js';
import { defaultUsersCollection, USERS } from '../collections/users-collection.js';
import { noteInDocument, type DocumentReader, type ServiceNotes } from '../documents/store/document-store.js';
import { normaliseEmail } from './credentials.js';
import type { User } from './user.js';

/**
 * The stored users of a project, for reading; a user is written as a document of `users` is. Their place is named by
 * the project's id alone, before and after the schema is first edited.
 */
export function userStore(app: Pick<App, 'db'>, projectId: ObjectId): DocumentReader<User> {
  return app.db.collection<User>(documentsName(defaultUsersCollection(projectId)));
}

/** A trashed account is none: a reference of its own can trash it. */
const PRESENT = { isDeleted: false } as const;

export function findUserByEmail(app: Pick<App, 'db'>, projectId: ObjectId, email: string): Promise<User | null> {
  return userStore(app, projectId).findOne({ email, ...PRESENT });
}

export function findUser(app: Pick<App, 'db'>, projectId: ObjectId, id: ObjectId): Promise<User | null> {
  return userStore(app, projectId).findOne({ _id: id, ...PRESENT });
}

/** The user with that id or e-mail address; 404 USER_NOT_FOUND when there is none. */
export async function requireUser(app: Pick<App, 'db'>, projectId: ObjectId, idOrEmail: string): Promise<User> {
  const id = findObjectId(idOrEmail);
  const user = id
    ? await findUser(app, projectId, id)
    : await findUserByEmail(app, projectId, normaliseEmail(idOrEmail));
  if (!user) throw missing('USER_NOT_FOUND', `The project has no user "${idOrEmail.slice(0, 100)}"`);
  return user;
}

/**
 * Stores notes of the service in an account and answers it; without webhook events. Null when none matches. Notes that
 * end its sessions end its access tokens by the same transaction.
 */
export async function noteInAccount(
  app: App,
  projectId: ObjectId,
  filter: Record<string, unknown> & { _id: ObjectId },
  notes: ServiceNotes,
): Promise<User | null> {
  const collection = await requireCollection(app, projectId, USERS);
  const ended = tokensEnded(app, projectId, filter._id, notes);
  return (await noteInDocument(app, collection, { ...filter, ...PRESENT }, notes, ended)) as User | null;
}

/** The turn that ends the access tokens of an account in the transaction of a write that ends its sessions. */
export function tokensEnded(
  app: App,
  projectId: ObjectId,
  userId: ObjectId,
  set: Readonly<Record<string, unknown>>,
): WriteTurn[] {
  const before = set[`${HIDDEN_FIELD}.tokensSince`] as Date | undefined;
  const exceptSession = set[`${HIDDEN_FIELD}.keptSession`] as string | null | undefined;
  return before ? [cutoffTurn(app, projectId, userId, { before, exceptSession: exceptSession ?? null })] : [];
}

export function userGone(): AppError {
  return missing('USER_NOT_FOUND', 'The user no longer exists');
}

/** The refusal of a write whose account is no longer as it was read. */
export function accountChanged(): AppError {
  return conflict('CHANGED_MEANWHILE', 'The account was changed at the same time. Try again');
}

const prepared = new WeakMap<Database, Set<string>>();

/**
 * Makes sure, once per process and project, that the indexes exist which keep addresses unique: before the first user
 * is written.
 */
export async function prepareUserStore(app: App, projectId: ObjectId): Promise<void> {
  let done = prepared.get(app.db);
  if (!done) prepared.set(app.db, (done = new Set()));
  const key = projectId.toHexString();
  if (done.has(key)) return;
  const collection = (await findCollection(app, projectId, USERS)) ?? defaultUsersCollection(projectId);
  await addIndexes(app, collection);
  done.add(key);
}
