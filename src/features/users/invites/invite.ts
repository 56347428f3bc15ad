import type { ObjectId } from 'bson';
import { missing, type AppError } from '../../../errors.js';
import { storeOf } from '../../../platform/database/store-of.js';

export const INVITES = 'invites';

/** An invitation of an address to a project (accounts.md 3). */
export interface Invite {
  /** SHA-256 of the token in the mail. */
  _id: string;
  /** Names it to the project's server, without the token. */
  id: ObjectId;
  projectId: ObjectId;
  email: string;
  roles: string[];
  /** The document to store, in which `=user.id` stands for the user, and its id, so that it is stored once. */
  set?: { collection: string; document: Record<string, unknown>; documentId: ObjectId };
  createdAt: Date;
  expiresAt: Date;
  /** The user who has begun to accept it: nobody else may. */
  usedBy: ObjectId | null;
  /** When all of it was done. */
  usedAt: Date | null;
}

export const inviteStore = storeOf<Invite>(INVITES);

export function inviteUnknown(): AppError {
  return missing(
    'INVITE_NOT_FOUND',
    'The invitation is unknown, was used or withdrawn, or has expired: ask for another',
  );
}

/** An invitation for the project's server. */
export function presentInvite({ id, email, roles, createdAt, expiresAt }: Invite) {
  return {
    id: id.toHexString(),
    email,
    roles,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
}
