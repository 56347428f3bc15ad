import { HIDDEN_FIELD, type Field } from '../../collections/fields/field.js';
import { ROLES } from '../../collections/users-collection.js';
import { presentDocument, type PresentedDocument } from '../../documents/reply/present-document.js';
import { isAnonymous, type User } from '../user.js';
import {
  arrayOf,
  claimed,
  FLAG,
  ID,
  MOMENT,
  object,
  oneOf,
  orNull,
  text,
  TEXT,
  type Schema,
} from '../../../platform/schema/schema.js';
import { MAX_PASSWORD_BYTES, MAX_EMAIL_CHARACTERS } from '../../../platform/schema/text-forms.js';
import { MIN_PASSWORD_BYTES } from '../credentials.js';

/**
 * A user as its owner and the operator see it: schema fields, `emailVerified`, `createdAt`, `updatedAt`, the roles of
 * who was ever given some; never the password or the service's notes.
 */
export function presentUser(user: User): PresentedDocument {
  const { password: _password, isDeleted: _isDeleted, deletedAt: _deletedAt, ...rest } = presentDocument(user);
  const { roles } = user[HIDDEN_FIELD];
  return {
    ...rest,
    ...(isAnonymous(user) && { isAnonymous: true }),
    ...(roles !== undefined && !Object.hasOwn(rest, ROLES) && { [ROLES]: roles }),
  };
}

/** The public view of a user: the id and the fields that the schema marks public. */
export function presentPublicUser(user: User, fields: readonly Field[]): PresentedDocument {
  const shown: PresentedDocument = { _id: user._id.toHexString() };
  for (const { name, public: isPublic } of fields) {
    if (isPublic && name !== 'password' && Object.hasOwn(user, name)) shown[name] = user[name];
  }
  return shown;
}

const FIELDS = { _id: ID, emailVerified: FLAG, createdAt: MOMENT, updatedAt: MOMENT };
const OF_MOST = {
  email: { ...TEXT, description: 'Absent for anonymous users.' },
  isAnonymous: { ...oneOf(true), description: 'Only for anonymous users.' },
};
/** Never there, whatever the schema of `users` says. */
const HIDDEN = { password: false, _bsvc: false, isDeleted: false, deletedAt: false };

/** Of an account with an authenticator app, or whose factors are about to be reset. */
const FACTORS = object({
  since: { ...orNull(MOMENT), description: 'When the authenticator app was added; null without one.' },
  resetAt: { ...orNull(MOMENT), description: 'When a pending MFA reset takes effect.' },
});

const open = (
  title: string,
  fields: Record<string, Schema>,
  more: Record<string, Schema> = {},
): Schema<PresentedDocument> =>
  claimed({
    title,
    type: 'object',
    required: Object.keys(fields),
    properties: { ...fields, ...more, ...OF_MOST, name: TEXT, roles: arrayOf(TEXT), ...HIDDEN },
  });

export const USER = {
  ...open('User', FIELDS),
  description: 'An end user: the fields of the collection `users`, without the password.',
};

export const ACCOUNT = {
  ...open('Account', { ...FIELDS, disabled: FLAG, hasPassword: FLAG }, { mfa: FACTORS }),
  description: 'An end user, for operators.',
};

export const PUBLIC_USER: Schema<PresentedDocument> = claimed({
  title: 'PublicUser',
  description: 'Fields of `users` that are marked public.',
  type: 'object',
  required: ['_id'],
  properties: { _id: ID, ...HIDDEN },
});

export const SESSION = object(
  { id: TEXT, createdAt: MOMENT, usedAt: MOMENT, expiresAt: MOMENT, ip: orNull(TEXT), userAgent: orNull(TEXT) },
  'Session',
);

export const IDENTITY = object({ provider: TEXT, linkedAt: MOMENT }, 'Identity');

/** An address as a body brings it, to be normalised. */
export const EMAIL = text({
  minLength: 1,
  maxLength: MAX_EMAIL_CHARACTERS,
  wellFormed: true,
  examples: ['ada@example.com'],
});
/** A password that an account has already. */
export const PASSWORD = text({
  minLength: 1,
  maxBytes: MAX_PASSWORD_BYTES,
  wellFormed: true,
  examples: ['correct horse battery'],
});
/** A password that an account is to get. */
export const NEW_PASSWORD = text({
  minBytes: MIN_PASSWORD_BYTES,
  maxBytes: MAX_PASSWORD_BYTES,
  wellFormed: true,
  description: `${MIN_PASSWORD_BYTES} to ${MAX_PASSWORD_BYTES} bytes of UTF-8.`,
  examples: ['correct horse battery'],
});

type JsonObject = Record<string, unknown>;

/** The body of a signup: the rest of it is for the schema of `users` to say. */
export const NEW_USER: Schema<JsonObject> = claimed({
  title: 'NewUser',
  type: 'object',
  required: ['email', 'password'],
  properties: { email: EMAIL, password: NEW_PASSWORD },
});

/** The body of an anonymous sign-up; fields of `users` are checked by its schema. */
export const ANONYMOUS_USER: Schema<JsonObject> = claimed({
  title: 'AnonymousUser',
  type: 'object',
  properties: { email: false, password: false },
});

/** The body of a new account that the project makes. */
export const NEW_ACCOUNT: Schema<JsonObject> = claimed({
  title: 'NewAccount',
  type: 'object',
  required: ['email'],
  properties: { email: EMAIL, password: NEW_PASSWORD, emailVerified: FLAG, roles: arrayOf(TEXT) },
});

/** The body of a profile's change by the project. */
export const USER_CHANGES: Schema<JsonObject> = claimed({
  title: 'UserChanges',
  type: 'object',
  properties: { email: EMAIL, password: false },
});

/** The body of a profile's change by its user. */
export const PROFILE_CHANGES: Schema<JsonObject> = claimed({
  title: 'ProfileChanges',
  type: 'object',
  properties: {
    email: EMAIL,
    password: { ...NEW_PASSWORD, description: 'For an anonymous user who adds an address.' },
    currentPassword: {
      ...orNull(text({ maxBytes: MAX_PASSWORD_BYTES })),
      description: 'Required to change the address of an account with a password.',
    },
  },
});
