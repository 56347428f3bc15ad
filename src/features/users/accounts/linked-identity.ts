import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';

export const SOCIAL_IDENTITIES = 'social_identities';

/** A person at a provider who is a user here. */
export interface LinkedIdentity {
  /** Hash of project, issuer and subject. */
  _id: string;
  projectId: ObjectId;
  userId: ObjectId;
  provider: string;
  /** The account's, when the identity was linked. */
  ownership?: string;
  createdAt: Date;
}

export const identityStore = storeOf<LinkedIdentity>(SOCIAL_IDENTITIES);

/** True if a link still opens the account: it is not an earlier owner's and not taken off. */
export function isLinkOf(link: LinkedIdentity, user: User): boolean {
  const { ownership, keptIdentity, unlinked = [] } = user[HIDDEN_FIELD];
  if (unlinked.includes(markOf(link))) return false;
  return link.ownership === ownership || link._id === keptIdentity;
}

/** The identities that open the account, the oldest first. */
export async function listIdentities(app: App, project: Project, user: User): Promise<LinkedIdentity[]> {
  return (await findLinkRecords(app, project, user)).filter((link) => isLinkOf(link, user));
}

export function findLinkRecords(app: App, project: Project, { _id }: Pick<User, '_id'>): Promise<LinkedIdentity[]> {
  return identityStore(app).find({ projectId: project._id, userId: _id }).sort({ createdAt: 1, _id: 1 }).toArray();
}

/** The form of an identity for its user and for operators: nothing of the provider's own name for the person. */
export function presentIdentity({ provider, createdAt }: LinkedIdentity) {
  return { provider, linkedAt: createdAt.toISOString() };
}

/**
 * Removes the records of links that no longer open the account. Harmless to repeat: they are refused with or without
 * their record.
 */
export async function removeDeadLinks(app: App, project: Project, user: User): Promise<void> {
  const links = await findLinkRecords(app, project, user);
  for (const link of links) if (!isLinkOf(link, user)) await removeLink(app, link);
}

/** Removes a link as it was read: a link that has been made again stays. */
export async function removeLink(app: App, link: LinkedIdentity): Promise<void> {
  await identityStore(app).deleteOne({ _id: link._id, userId: link.userId, createdAt: link.createdAt });
}

/** Names a linked identity or a passkey, and no later one of the same kind: what the account notes when it goes. */
export function markOf({ _id, createdAt }: { _id: string; createdAt: Date }): string {
  return `${_id}@${createdAt.getTime()}`;
}
