import { FLAG, ID, MOMENT, object, orNull, TEXT, type Schema } from '../../../http/routes/route-description.js';

const FIELDS: Record<string, Schema> = {
  _id: ID,
  email: TEXT,
  emailVerified: FLAG,
  createdAt: MOMENT,
  updatedAt: MOMENT,
};
/** Never there, whatever the schema of `users` says. */
const HIDDEN: Record<string, false> = { password: false, _bsvc: false, isDeleted: false, deletedAt: false };

const open = (title: string, fields: Record<string, Schema>): Schema => ({
  title,
  type: 'object',
  required: Object.keys(fields),
  properties: { ...fields, name: TEXT, ...HIDDEN },
});

/** What presentUser answers. */
export const USER: Schema = {
  ...open('User', FIELDS),
  description: 'An end user: the fields of the collection `users`, without the password.',
};

/** What presentAccount answers. */
export const ACCOUNT: Schema = {
  ...open('Account', { ...FIELDS, disabled: FLAG, hasPassword: FLAG }),
  description: 'An end user as operators see it.',
};

/** What presentPublicUser answers. */
export const PUBLIC_USER: Schema = {
  title: 'PublicUser',
  description: 'The fields that the schema of `users` marks public.',
  type: 'object',
  required: ['_id'],
  properties: { _id: ID, ...HIDDEN },
};

/** What presentSession answers. */
export const SESSION: Schema = object(
  { id: TEXT, createdAt: MOMENT, usedAt: MOMENT, expiresAt: MOMENT, ip: orNull(TEXT), userAgent: orNull(TEXT) },
  'Session',
);

export const EMAIL: Schema = { type: 'string', minLength: 1, maxLength: 320, examples: ['ada@example.com'] };
export const PASSWORD: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 72,
  description: '6 to 72 bytes of UTF-8.',
  examples: ['correct horse battery'],
};

/** The body of a signup, by the end user or by somebody who may set every field. */
export const NEW_USER: Schema = {
  title: 'NewUser',
  type: 'object',
  required: ['email', 'password'],
  properties: { email: EMAIL, password: PASSWORD },
};

/** The body of a profile's change. */
export const USER_CHANGES: Schema = {
  title: 'UserChanges',
  type: 'object',
  properties: { email: EMAIL, password: false },
};

/** The body of a profile's change by its user. */
export const PROFILE_CHANGES: Schema = {
  title: 'ProfileChanges',
  type: 'object',
  properties: {
    email: EMAIL,
    password: false,
    currentPassword: { ...PASSWORD, description: 'Needed for another address where the account has a password.' },
  },
};

/** As presentIdentity makes it. */
export const IDENTITY: Schema = object({ provider: TEXT, linkedAt: MOMENT }, 'Identity');
