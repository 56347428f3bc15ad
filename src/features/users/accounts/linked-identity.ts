import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, missing } from '../../../errors.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import { changeUser } from './change-user.js';
import { endSessions, sessionsEnd } from '../sessions/end-sessions.js';
import type { User } from '../user.js';
import { accountChanged, requireUser } from '../user-store.js';

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

/** Names this link and no later one of the same identity. */
function markOf({ _id, createdAt }: LinkedIdentity): string {
  return `${_id}@${createdAt.getTime()}`;
}

/** The identities that open the account, the oldest first. */
export async function listIdentities(app: App, project: Project, user: User): Promise<LinkedIdentity[]> {
  return (await findRecords(app, project, user)).filter((link) => isLinkOf(link, user));
}

function findRecords(app: App, project: Project, { _id }: Pick<User, '_id'>): Promise<LinkedIdentity[]> {
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
  const links = await findRecords(app, project, user);
  for (const link of links) if (!isLinkOf(link, user)) await removeLink(app, link);
}

/** Removes a link as it was read: a link that has been made again stays. */
export async function removeLink(app: App, link: LinkedIdentity): Promise<void> {
  await identityStore(app).deleteOne({ _id: link._id, userId: link.userId, createdAt: link.createdAt });
}

const MAX_RACES = 5;

/**
 * Takes every identity of a provider off the account, and ends all sessions but `keepSession`, by one write of the
 * account. 404 IDENTITY_NOT_FOUND; 409 LAST_WAY_IN when neither a password nor another identity would be left, however
 * many are taken off at once.
 */
export async function unlinkIdentity(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  provider: string,
  keepSession: string | null,
): Promise<void> {
  for (let race = 0; race < MAX_RACES; race++) {
    const user = await requireUser(app, project._id, _id.toHexString());
    const records = await findRecords(app, project, user);
    const links = records.filter((link) => isLinkOf(link, user));
    const going = links.filter((link) => link.provider === provider);
    if (going.length === 0) throw missing('IDENTITY_NOT_FOUND', 'The account has no identity of this provider');
    const { passwordHash, ownership, unlinked } = user[HIDDEN_FIELD];
    if (passwordHash === null && going.length === links.length) {
      throw conflict(
        'LAST_WAY_IN',
        'This is the account’s only way in: set a password first (request-password-reset), or link another provider',
      );
    }
    const changed = await changeUser(
      app,
      project,
      {
        _id,
        [`${HIDDEN_FIELD}.passwordHash`]: passwordHash,
        [`${HIDDEN_FIELD}.ownership`]: ownership ?? null,
        [`${HIDDEN_FIELD}.unlinked`]: unlinked ?? null,
      },
      {
        // Marks matter only while their record is there.
        [`${HIDDEN_FIELD}.unlinked`]: records
          .filter((link) => unlinked?.includes(markOf(link)) || going.includes(link))
          .map(markOf),
        ...sessionsEnd(app, user, keepSession),
      },
    );
    if (!changed) continue;
    await endSessions(app, project, changed, 'account changed');
    await removeDeadLinks(app, project, changed);
    return;
  }
  throw accountChanged();
}
