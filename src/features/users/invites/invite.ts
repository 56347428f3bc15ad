import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { missing, type AppError } from '../../../errors.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { findObjectId } from '../../../platform/ids.js';
import { arrayOf, MOMENT, object, TEXT } from '../../../platform/schema/schema.js';
import type { Project } from '../../projects/project.js';

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
  /** The user who has started to accept it; no other user may. */
  usedBy: ObjectId | null;
  /** When all of it was done. */
  usedAt: Date | null;
}

export const inviteStore = storeOf<Invite>(INVITES);

export function inviteUnknown(): AppError {
  return missing('INVITE_NOT_FOUND', 'The invitation is unknown, used, withdrawn or expired. Ask for a new one');
}

export const INVITE = object(
  { id: TEXT, email: TEXT, roles: arrayOf(TEXT), createdAt: MOMENT, expiresAt: MOMENT },
  'Invite',
);

const MAX_LISTED = 100;

/** The open invitations of a project, the newest first; at most 100, which is as many as there can be. */
export function listInvites(app: App, project: Pick<Project, '_id'>): Promise<Invite[]> {
  const open = { projectId: project._id, usedAt: null, expiresAt: { $gt: new Date(app.clock.now()) } };
  return inviteStore(app).find(open).sort({ createdAt: -1, _id: -1 }).limit(MAX_LISTED).toArray();
}

/** Takes an open invitation back by one write; 404 INVITE_NOT_FOUND. */
export async function withdrawInvite(app: App, project: Pick<Project, '_id'>, invite: string): Promise<void> {
  const id = findObjectId(invite);
  const gone = id && (await inviteStore(app).findOneAndDelete({ projectId: project._id, id, usedAt: null }));
  if (!gone) throw inviteUnknown();
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
