import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { clientNetwork } from '../../../http/requests/client-address.js';
import { MAX_PASSWORD_BYTES, passwordBytes } from '../../../platform/schema/text-forms.js';
import type { Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { ROLES, rolesOf, EMAIL_VERIFIED, USERS } from '../../collections/users-collection.js';
import { Problems } from '../../documents/reply/problems.js';
import type { Caller } from '../../access/caller.js';
import { commitWrite } from '../../documents/store/commit-writes.js';
import { type ServiceChange, withServiceChange } from '../../documents/store/service-change.js';
import { openUpdate, readUpdate } from '../../documents/write/update-document.js';
import type { WriteTarget } from '../../documents/write/write-target.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from '../accounts/change-user.js';
import { checkNewPassword, isEmail, normaliseEmail } from '../credentials.js';
import { findVerifyingSession, ownershipBegins, removeEnded } from '../codes/ownership.js';
import { emailTaken, isEmailConflict, requireSizeAfter } from '../accounts/insert-user.js';
import { rejectProtected, type FieldSetter } from '../accounts/new-user.js';
import { takeRoles } from '../accounts/user-roles.js';
import { BY_STRANGER, sendChangeCode, sendCode } from '../codes/send-code.js';
import { isAnonymous, type User } from '../user.js';
import { accountChanged, findUserByEmail, tokensEnded } from '../user-store.js';
import { withCurrentPassword } from '../accounts/password.js';

/** The editor of a profile, and the network of the request. */
export interface ProfileEditor {
  setter: FieldSetter;
  ip: string;
  /** The user's session in which it is done, if there is one. */
  session: string | null;
  /** The user, where that is the setter: a profile refers to documents with the rights of its user. */
  caller?: Caller;
}

/**
 * The changed account; `mailed` says whether the code for a pending address is on its way, and is absent when none was
 * asked for.
 */
export interface ProfileChange {
  user: User;
  mailed?: boolean;
}

/**
 * Changes fields of a user under the rules of document updates (rest-api.md 4.2) by one write. A user's new address is
 * pending until its code is confirmed and needs `currentPassword` where there is one; the project's counts at once, and
 * one it vouches for ends the identities and sessions of earlier owners. 400 for fields that the setter may not set,
 * for `password` (which has its own route) and for what the schema refuses; 409 EMAIL_TAKEN or DUPLICATE_VALUE.
 */
export async function updateProfile(
  app: App,
  project: Project,
  user: User,
  body: unknown,
  editor: ProfileEditor,
): Promise<ProfileChange> {
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'The body must be a JSON object');
  const collection = await requireCollection(app, project._id, USERS);
  const referrer = editor.setter === 'user' && editor.caller ? { caller: editor.caller } : undefined;
  const place = { collection: withEmailVerified(collection), writer: null, referrer };
  const { change, address, password, currentPassword, roles } = readChange(collection, user, body, editor.setter);
  if (address !== null) {
    await authoriseEmailChange(app, project, user, address, { currentPassword, ip: editor.ip });
    const pending = notesPendingEmail(app, user, address);
    if (password !== null) {
      const tenant = project._id.toHexString();
      const hash = await app.passwords.inTurn(tenant, (bcrypt) => bcrypt.hash(password));
      pending.set = { ...pending.set, [`${HIDDEN_FIELD}.passwordHash`]: hash };
    }
    const updated = await write(app, project, place, user, change, pending);
    return {
      user: updated,
      mailed: await sendChangeCode(app, project, user, address, { network: clientNetwork(editor.ip) }),
    };
  }
  if (Object.keys(change).length === 0 && !roles && Object.keys(body).length > 0) return { user };
  const notes = roles ? { [`${HIDDEN_FIELD}.${ROLES}`]: roles } : null;
  return { user: await changeAtOnce(app, project, place, user, { change, notes }, editor) };
}

interface ChangeAtOnce {
  change: Record<string, unknown>;
  /** Paths among the service's notes that change with it. */
  notes: Record<string, unknown> | null;
}

/** A change by the project, or by the user of other fields than the address. */
async function changeAtOnce(
  app: App,
  project: Project,
  place: WriteTarget,
  user: User,
  { change, notes }: ChangeAtOnce,
  editor: ProfileEditor,
): Promise<User> {
  const newEmail = typeof change.email === 'string';
  const proven = change[EMAIL_VERIFIED] === true && (newEmail || !user.emailVerified);
  if (newEmail && !Object.hasOwn(change, EMAIL_VERIFIED)) change[EMAIL_VERIFIED] = false;
  if (!newEmail && !proven) {
    return write(app, project, place, user, change, notes ? { filter: {}, set: notes } : undefined);
  }
  const asRead = { email: user.email ?? null, emailVerified: user.emailVerified };
  if (!proven) {
    const set = { ...notes, [`${HIDDEN_FIELD}.pendingEmail`]: null };
    const updated = await write(app, project, place, user, change, { filter: asRead, set });
    if (!updated.emailVerified && updated.email) {
      await sendCode(app, project, 'verification', updated.email, { asker: BY_STRANGER });
    }
    return updated;
  }
  const set = { ...notes, ...ownershipBegins(app, user, await findVerifyingSession(app, user, editor.session)) };
  const updated = await write(app, project, place, user, change, { filter: asRead, set });
  await removeEnded(app, project, updated);
  return updated;
}

async function write(
  app: App,
  project: Project,
  place: WriteTarget,
  user: User,
  change: Record<string, unknown>,
  alongside?: ServiceChange,
): Promise<User> {
  const { _id } = user;
  requireSizeAfter(user, change);
  if (alongside && Object.keys(change).length === 0) {
    const changed = await changeUser(app, project, { _id, ...alongside.filter }, alongside.set);
    if (!changed) throw accountChanged();
    return changed;
  }
  try {
    const update = await openUpdate(app, place, readUpdate(place, _id.toHexString(), change, app.clock.now()));
    const together = alongside && tokensEnded(app, project._id, _id, alongside.set);
    const whole = alongside ? await withServiceChange(update, { ...alongside, together }) : update;
    return (await commitWrite(app, whole)).after as User;
  } catch (error) {
    throw isEmailConflict(error) ? emailTaken() : error;
  }
}

interface ReadChange {
  change: Record<string, unknown>;
  /** The address that a user asks for. */
  address: string | null;
  /** For an anonymous user who adds an address. */
  password: string | null;
  currentPassword: string | null;
  /** Those that the project sets. */
  roles: string[] | undefined;
}

function readChange(
  collection: Collection,
  user: User,
  body: Record<string, unknown>,
  setter: FieldSetter,
): ReadChange {
  const problems = new Problems();
  const change = { ...body };
  const currentPassword = setter === 'user' ? takePassword(change, problems) : null;
  const password = setter === 'user' && isAnonymous(user) ? takeNewPassword(change, problems) : null;
  for (const path of Object.keys(change)) {
    if (path.split('.')[0] === 'password') problems.add('password', 'is changed by change-password only', path);
  }
  const present = rolesOf(collection.fields, user);
  const roles = takeRoles(collection.fields, change, { maySet: setter === 'project', present }, problems);
  rejectProtected(collection, Object.keys(change), setter, problems);
  if (setter === 'user' && Object.hasOwn(change, EMAIL_VERIFIED)) {
    // A fetched profile may be sent back as it is.
    if (change[EMAIL_VERIFIED] !== user.emailVerified) {
      problems.add('protected', 'cannot be set by users', EMAIL_VERIFIED);
    }
    delete change[EMAIL_VERIFIED];
  }
  let address: string | null = null;
  if (typeof change.email === 'string') {
    change.email = normaliseEmail(change.email);
    if (!isEmail(change.email as string)) problems.add('format', 'must be an e-mail address', 'email');
    // Sent back as it is. Stored, it could undo a change made since and keep the confirmation of that one.
    if (change.email === user.email) {
      delete change.email;
    } else if (setter === 'user') {
      address = change.email as string;
      delete change.email;
    }
  }
  if (password !== null && address === null) {
    problems.add('password', 'is set together with an e-mail address', 'password');
  }
  problems.throwIfAny();
  return { change, address, password, currentPassword, roles };
}

function takePassword(change: Record<string, unknown>, problems: Problems): string | null {
  const { currentPassword = null } = change;
  delete change.currentPassword;
  if (currentPassword === null || currentPassword === '') return null;
  if (typeof currentPassword !== 'string') {
    problems.add('type', 'must be a String', 'currentPassword');
  } else if (passwordBytes(currentPassword) > MAX_PASSWORD_BYTES) {
    problems.add('length', `must have at most ${MAX_PASSWORD_BYTES} bytes`, 'currentPassword');
  }
  return currentPassword as string;
}

/** The new password of an anonymous user; null without one. */
function takeNewPassword(change: Record<string, unknown>, problems: Problems): string | null {
  if (!Object.hasOwn(change, 'password')) return null;
  const { password } = change;
  delete change.password;
  if (typeof password === 'string') checkNewPassword(password, problems, 'password');
  else problems.add('type', 'must be a String', 'password');
  return typeof password === 'string' ? password : null;
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

/**
 * Refuses an address that a user may not ask for: 409 EMAIL_TAKEN; where the account has a password, 400
 * CURRENT_PASSWORD_REQUIRED without it and 401 INVALID_CREDENTIALS for a wrong one, which counts like a failed sign-in.
 */
async function authoriseEmailChange(
  app: App,
  project: Project,
  user: User,
  address: string,
  given: { currentPassword: string | null; ip: string },
): Promise<void> {
  const { currentPassword, ip } = given;
  if (user[HIDDEN_FIELD].passwordHash !== null) {
    if (currentPassword === null) {
      throw invalid('CURRENT_PASSWORD_REQUIRED', 'Send currentPassword to change the email address');
    }
    await withCurrentPassword(app, project._id, user, { currentPassword, ip }, () => Promise.resolve());
  }
  // Anonymous users learn it only after they confirm the address, because anyone can be one.
  if (!isAnonymous(user) && (await findUserByEmail(app, project._id, address))) throw emailTaken();
}

/** The part of a write that notes the address which the account is to have; it keeps its own until verifyEmail. */
function notesPendingEmail(app: App, user: User, address: string): ServiceChange {
  return {
    // Authorised by that password, for an account that had that address.
    filter: { email: user.email ?? null, [`${HIDDEN_FIELD}.passwordHash`]: user[HIDDEN_FIELD].passwordHash },
    set: { [`${HIDDEN_FIELD}.pendingEmail`]: { address, askedAt: new Date(app.clock.now()) } },
  };
}
