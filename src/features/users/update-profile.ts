import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Collection } from '../collections/collection.js';
import { requireCollection } from '../collections/collection-store.js';
import { isJsonObject } from '../collections/field-type.js';
import { EMAIL_VERIFIED, USERS } from '../collections/users-collection.js';
import { Problems } from '../documents/problems.js';
import { updateDocument } from '../documents/update-document.js';
import type { Project } from '../projects/project.js';
import { isEmail, normaliseEmail } from './credentials.js';
import { emailTaken, isEmailConflict } from './insert-user.js';
import { refuseProtected, type FieldSetter } from './new-user.js';
import { sendCode } from './send-code.js';
import type { User } from './user.js';
import { requireUser } from './user-store.js';

/**
 * Changes fields of a user under the rules of document updates (rest-api.md 4.2). A new address has to be confirmed again. 400 for fields that the setter
 * may not set, for `password` (which has its own route) and for what the schema refuses; 409 EMAIL_TAKEN or DUPLICATE_VALUE.
 */
export async function updateProfile(
  app: App,
  project: Project,
  user: User,
  body: unknown,
  setter: FieldSetter,
): Promise<User> {
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'The body must be a JSON object');
  const collection = await requireCollection(app, project._id, USERS);
  const change = readChange(collection, user, body, setter);
  if (Object.keys(change).length === 0 && Object.keys(body).length > 0) return user;
  const newEmail = typeof change.email === 'string';
  if (newEmail && !Object.hasOwn(change, EMAIL_VERIFIED)) change[EMAIL_VERIFIED] = false;
  const id = user._id.toHexString();
  try {
    await updateDocument(app, { collection: withEmailVerified(collection), writer: null }, id, change);
  } catch (error) {
    throw isEmailConflict(error) ? emailTaken() : error;
  }
  const updated = await requireUser(app, project._id, id);
  if (newEmail && !updated.emailVerified) await sendCode(app, project, 'verification', updated.email);
  return updated;
}

function readChange(
  collection: Collection,
  user: User,
  body: Record<string, unknown>,
  setter: FieldSetter,
): Record<string, unknown> {
  const problems = new Problems();
  const change = { ...body };
  for (const path of Object.keys(change)) {
    if (path.split('.')[0] === 'password') problems.add('password', 'is changed by change-password only', path);
  }
  refuseProtected(collection, Object.keys(change), setter, problems);
  if (setter === 'user' && Object.hasOwn(change, EMAIL_VERIFIED)) {
    // A fetched profile may be sent back as it is.
    if (change[EMAIL_VERIFIED] !== user.emailVerified)
      problems.add('protected', 'cannot be set by users', EMAIL_VERIFIED);
    delete change[EMAIL_VERIFIED];
  }
  if (typeof change.email === 'string') {
    change.email = normaliseEmail(change.email);
    if (!isEmail(change.email as string)) problems.add('format', 'must be an e-mail address', 'email');
    // Sent back as it is. Stored, it could undo a change made meanwhile and keep the confirmation of that one.
    if (change.email === user.email) delete change.email;
  }
  problems.throwIfAny();
  return change;
}

const widened = new WeakMap<Collection, Collection>();

/** The collection with the one field that the service keeps beside the schema, so that both change by one write. */
function withEmailVerified(collection: Collection): Collection {
  let wide = widened.get(collection);
  if (!wide) {
    wide = { ...collection, fields: [...collection.fields, { name: EMAIL_VERIFIED, type: 'Boolean', required: true }] };
    widened.set(collection, wide);
  }
  return wide;
}
