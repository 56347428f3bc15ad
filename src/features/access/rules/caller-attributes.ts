import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { findObjectId } from '../../../platform/ids.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { findCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { ROLES, rolesOf, defaultUsersCollection, EMAIL_VERIFIED, USERS } from '../../collections/users-collection.js';
import type { Caller, Level } from '../caller.js';
import { ownId, type CallerAttributes } from './compile-rule.js';

/** readAttributes where the token says them all; undefined where the account has to be read for them. */
export function peekAttributes({ bearer }: Caller, names: readonly string[]): CallerAttributes | undefined {
  if (bearer.state !== 'user') return null;
  return names.every((name) => name === SECOND_FACTOR) ? ownAttributes(bearer) : undefined;
}

/**
 * What rules know of the caller: the id, and of the account the attributes that they name. Read from the account each
 * time, so that what was taken from a user counts for the next request.
 */
export async function readAttributes(app: App, caller: Caller, given: readonly string[]): Promise<CallerAttributes> {
  const known = peekAttributes(caller, given);
  const { bearer, project } = caller;
  if (known !== undefined || bearer.state !== 'user') return known ?? null;
  const names = given.filter((name) => name !== SECOND_FACTOR);
  const own = ownAttributes(bearer);
  const projectId = project._id;
  const users = (await findCollection(app, projectId, USERS)) ?? defaultUsersCollection(projectId);
  const id = findObjectId(bearer.userId);
  const account =
    id &&
    (await app.db
      .collection(documentsName(defaultUsersCollection(projectId)))
      .findOne({ _id: id, isDeleted: false }, app.db.confirmedReads));
  return account && !isDisabled(account) ? { ...attributesOf(users, account, names), ...own } : own;
}

/** Of the token, not of the account: whether this session has a second factor. */
const SECOND_FACTOR = 'mfa';

function ownAttributes({ userId, level }: { userId: string; level?: Level }) {
  return { ...ownId(userId), [SECOND_FACTOR]: level === 2 };
}

function isDisabled(account: Document): boolean {
  const notes = account[HIDDEN_FIELD] as { disabledAt?: unknown } | undefined;
  return Boolean(notes?.disabledAt);
}

/**
 * The fields of an account that users cannot set on themselves. Anyone can sign up with any address, so `email`
 * is absent until the user has proven that it is theirs.
 */
function attributesOf(users: Collection, account: Document, names: readonly string[]): Record<string, unknown> {
  const isVouchedFor = (name: string): boolean => {
    if (name === 'email') return account[EMAIL_VERIFIED] === true;
    return name === EMAIL_VERIFIED || users.fields.some((field) => field.name === name && field.protected);
  };
  const values = names.filter(isVouchedFor).map((name) => [name, account[name] as unknown] as const);
  const roles = names.includes(ROLES) ? { [ROLES]: rolesOf(users.fields, account) } : {};
  return { ...Object.fromEntries(values), ...roles };
}
