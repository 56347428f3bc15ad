import { ObjectId } from 'bson';
import { invalid } from '../../../errors.js';
import type { Caller } from '../../access/caller.js';
import type { Collection } from '../../collections/collection.js';
import { HIDDEN_FIELD, SYSTEM_FIELDS, type Field } from '../../collections/fields/field.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { EMAIL_VERIFIED } from '../../collections/users-collection.js';
import { documentShape, storeObject } from '../../documents/store/document-shape.js';
import { rejectUnsafeValue } from '../../documents/store/unsafe-values.js';
import { Problems } from '../../documents/reply/problems.js';
import { checkNewPassword, isEmail, normaliseEmail } from '../credentials.js';
import type { User } from '../user.js';
import { takeRoles } from './user-roles.js';

const WITHOUT_PASSWORD = 'without a password';
const PLACEHOLDER_EMAIL = 'guest@example.com';

export interface NewUser {
  user: User;
  /** The password in the clear: storing the user hashes it. Null for an account without one. */
  password: string | null;
}

/**
 * The setter of a user's fields: the end user, who may not touch what the schema protects, or the project with its
 * secret key.
 */
export type FieldSetter = 'user' | 'project';

export function setterOf({ key }: Pick<Caller, 'key'>): FieldSetter {
  return key.type === 'secret' ? 'project' : 'user';
}

/**
 * The user that a signup's body asks for (rest-api.md 2.6, 4.1; decisions.md 2), without its password, which may be
 * left out where `needsPassword` is false; anonymous users have neither password nor address. Throws one 400 with all
 * problems.
 */
export function readNewUser(
  collection: Collection,
  body: unknown,
  {
    setter,
    needsPassword = true,
    isAnonymous = false,
  }: { setter: FieldSetter; needsPassword?: boolean; isAnonymous?: boolean },
  now: number,
): NewUser {
  if (!isJsonObject(body)) throw invalid('INVALID_BODY', 'The body must be a JSON object');
  rejectUnsafeValue(body);
  const problems = new Problems();
  const own = { ...body };
  for (const name of [...SYSTEM_FIELDS, HIDDEN_FIELD]) {
    if (Object.hasOwn(own, name)) problems.add('system', 'is set by the service', name);
    delete own[name];
  }
  if (isAnonymous) {
    for (const name of ['email', 'password', EMAIL_VERIFIED]) {
      if (Object.hasOwn(own, name)) problems.add('anonymous', 'is not allowed for anonymous users', name);
      delete own[name];
    }
    // As with the password below.
    own.email = PLACEHOLDER_EMAIL;
  }
  rejectProtected(collection, Object.keys(own), setter, problems);
  const emailVerified = readEmailVerified(own, setter, problems);
  const roles = takeRoles(collection.fields, own, { maySet: setter === 'project' }, problems);
  const isWithout = !needsPassword && !Object.hasOwn(own, 'password');
  // It only satisfies the schema; nothing of it is stored.
  if (isWithout) own.password = WITHOUT_PASSWORD;
  const { password, email: given, ...stored } = storeObject(documentShape(collection), own, problems, now);
  const email = typeof given === 'string' ? normaliseEmail(given) : '';
  if (typeof given === 'string' && !isEmail(email)) problems.add('format', 'must be an e-mail address', 'email');
  if (typeof password === 'string') checkNewPassword(password, problems, 'password');
  problems.throwIfAny();
  const moment = new Date(now);
  return {
    user: {
      _id: new ObjectId(),
      ...stored,
      ...(!isAnonymous && { email }),
      emailVerified,
      isDeleted: false,
      deletedAt: null,
      createdAt: moment,
      updatedAt: moment,
      [HIDDEN_FIELD]: {
        passwordHash: null,
        disabledAt: null,
        tokensSince: null,
        ...(isAnonymous && { anonymous: true }),
        ...(roles && { roles }),
      },
    },
    password: isWithout ? null : (password as string),
  };
}

/**
 * True for a change of what identifies a user or what rules grant: address, `emailVerified`, roles and protected fields
 * (dotted paths too).
 */
export function changesTrust(fields: readonly Field[], change: Record<string, unknown>): boolean {
  const own = new Set(fields.filter((field) => !field.protected).map(({ name }) => name));
  return Object.keys(change).some((path) => {
    const name = path.split('.')[0]!;
    return name === 'email' || !own.has(name);
  });
}

/** Notes every named field (dotted paths too) that an end user may not set. */
export function rejectProtected(
  collection: Pick<Collection, 'fields'>,
  paths: readonly string[],
  setter: FieldSetter,
  problems: Problems,
): void {
  if (setter === 'project') return;
  const closed = new Set(collection.fields.filter((field) => field.protected).map(({ name }) => name));
  for (const path of paths) {
    if (closed.has(path.split('.')[0]!)) problems.add('protected', 'cannot be set by users', path);
  }
}

/** Takes `emailVerified` out of a body: it is not in the schema, and only the project may set it. */
function readEmailVerified(body: Record<string, unknown>, setter: FieldSetter, problems: Problems): boolean {
  if (!Object.hasOwn(body, EMAIL_VERIFIED)) return false;
  const value = body[EMAIL_VERIFIED];
  delete body[EMAIL_VERIFIED];
  if (setter === 'user') problems.add('protected', 'cannot be set by users', EMAIL_VERIFIED);
  else if (typeof value !== 'boolean') problems.add('type', 'must be a Boolean', EMAIL_VERIFIED);
  return value === true;
}
