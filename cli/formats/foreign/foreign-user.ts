import { isJsonObject } from '../../../src/features/collections/fields/field-type.js';
import { findBcryptHash, type ImportedUser } from '../../../src/features/users/imports/import-users.js';
import { storeFirebaseHash, type FirebaseScryptParameters } from '../../../src/platform/secrets/firebase-scrypt.js';
import { readExtendedJson } from '../../../src/features/documents/bulk/extended-json.js';
import { readParseValue, foreignId, findForeignTime } from './foreign-document.js';

export const USER_SOURCES = ['firebase', 'pocketbase', 'supabase', 'parse'] as const;
export type UserSource = (typeof USER_SOURCES)[number];

type JsonObject = Record<string, unknown>;

/** An account as it is read, and why it comes without the password that it had. */
export interface ForeignUser {
  user: ImportedUser;
  lostPassword?: string;
}

/** The account that an exported one becomes. Throws for one that has no e-mail address, or is none. */
export function readForeignUser(
  source: UserSource,
  value: unknown,
  scrypt: FirebaseScryptParameters | null,
): ForeignUser {
  if (!isJsonObject(value)) throw new Error('a user must be a JSON object');
  if (source === 'firebase') return fromFirebase(value, scrypt);
  if (source === 'supabase') return fromSupabase(value);
  return source === 'parse' ? fromParse(value) : fromPocketBase(value);
}

/** One of `users` of `firebase auth:export --format=json`. */
function fromFirebase(user: JsonObject, scrypt: FirebaseScryptParameters | null): ForeignUser {
  const { localId, passwordHash, salt, createdAt, displayName, photoUrl, phoneNumber } = user;
  const read = { ...withoutPassword(localId, user.email), emailVerified: user.emailVerified === true };
  read.disabled = user.disabled === true;
  read.createdAt = Number(createdAt) > 0 ? new Date(Number(createdAt)) : null;
  read.fields = { name: displayName, photoUrl, phoneNumber };
  if (!isText(passwordHash)) return { user: read };
  if (!scrypt) return { user: read, lostPassword: 'no --hash-config was given' };
  // Both alphabets of base64 are met; Buffer reads either.
  const hashed = {
    passwordHash: Buffer.from(passwordHash, 'base64'),
    salt: Buffer.from(isText(salt) ? salt : '', 'base64'),
  };
  try {
    return { user: { ...read, passwordHash: storeFirebaseHash(hashed, scrypt) } };
  } catch (error) {
    return { user: read, lostPassword: (error as Error).message };
  }
}

/** An account of PocketBase; its fields are those of a document. */
function fromPocketBase({ id, email, verified, created, passwordHash, fields }: JsonObject): ForeignUser {
  const user: ImportedUser = {
    ...withoutPassword(id, email),
    emailVerified: Boolean(verified),
    createdAt: dateOf(created),
    fields: isJsonObject(fields) ? fields : {},
  };
  return withBcrypt(user, passwordHash);
}

/** A row of `auth.users`. */
function fromSupabase(row: JsonObject): ForeignUser {
  if (row.deleted_at) throw new Error('the account was deleted in Supabase');
  const banned = dateOf(row.banned_until);
  const user: ImportedUser = {
    ...withoutPassword(row.id, row.email),
    emailVerified: isText(row.email_confirmed_at),
    disabled: banned !== null && banned.getTime() > Date.now(),
    createdAt: dateOf(row.created_at),
    fields: isJsonObject(row.raw_user_meta_data) ? supabaseFields(row.raw_user_meta_data) : {},
  };
  return withBcrypt(user, row.encrypted_password);
}

/** What sign-in providers put beside what the app itself keeps. */
const SUPABASE_KEPT = ['sub', 'email', 'email_verified', 'phone_verified', 'iss', 'provider_id'];

function supabaseFields(meta: JsonObject): JsonObject {
  const own = Object.entries(meta).filter(([name]) => !SUPABASE_KEPT.includes(name));
  const { full_name: fullName, ...fields } = Object.fromEntries(own);
  return { ...fields, name: fields.name ?? fullName };
}

/** A document of `_User`. */
function fromParse(document: JsonObject): ForeignUser {
  const { _id, _hashed_password: hash, email, emailVerified, username, _created_at: created, ...rest } = document;
  const own = Object.entries(rest).filter(([name]) => !name.startsWith('_') && name !== 'authData');
  const user: ImportedUser = {
    ...withoutPassword(_id, isText(email) ? email : username),
    emailVerified: emailVerified === true,
    createdAt: dateOf(readParseFields(created)),
    fields: { username, ...Object.fromEntries(own.map(([name, value]) => [name, readParseFields(value)])) },
  };
  return withBcrypt(user, hash);
}

const readParseFields = (value: unknown): unknown => readExtendedJson(readParseValue(value), {}, () => undefined);

function withoutPassword(id: unknown, email: unknown): ImportedUser {
  const { $oid: oid = id } = isJsonObject(id) ? id : {};
  if (!isText(oid)) throw new Error('the user has no id');
  if (!isText(email)) throw new Error('the user has no email address');
  return {
    id: foreignId(oid),
    email,
    emailVerified: false,
    passwordHash: null,
    disabled: false,
    createdAt: null,
    fields: {},
  };
}

function withBcrypt(user: ImportedUser, hash: unknown): ForeignUser {
  if (!isText(hash)) return { user };
  const passwordHash = findBcryptHash(hash);
  return passwordHash === null
    ? { user, lostPassword: 'it is not a bcrypt hash' }
    : { user: { ...user, passwordHash } };
}

function dateOf(text: unknown): Date | null {
  const moment = findForeignTime(text);
  return moment === undefined ? null : new Date(moment);
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
