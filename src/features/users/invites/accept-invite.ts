import type { App } from '../../../app.js';
import { AppError, forbidden } from '../../../errors.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import { requireCollection } from '../../collections/collection-store.js';
import { insertDocumentRecord } from '../../documents/write/decide-insert.js';
import { readNewDocument } from '../../documents/write/new-document.js';
import type { Project } from '../../projects/project.js';
import { changeRoles } from '../accounts/user-roles.js';
import type { User } from '../user.js';
import { inviteStore, inviteUnknown, type Invite } from './invite.js';
import { fillIn } from './send-invite.js';

/** The open invitation of a token; 404 INVITE_NOT_FOUND. */
export async function requireInvite(app: App, project: Project, token: string): Promise<Invite> {
  const invite = await inviteStore(app).findOne({
    _id: sha256Hex(token),
    projectId: project._id,
    usedAt: null,
    expiresAt: { $gt: new Date(app.clock.now()) },
  });
  if (!invite) throw inviteUnknown();
  return invite;
}

/**
 * Gives the user the roles of an invitation and stores its document, both once: the invitation is the user's with the
 * first write, and what a crash left undone is done when it is accepted again. Opens no session. 403 EMAIL_MISMATCH
 * unless it is for the user's proven address.
 */
export async function acceptInvite(app: App, project: Project, user: User, token: string): Promise<User> {
  const invite = await requireInvite(app, project, token);
  if (!user.emailVerified || user.email !== invite.email) {
    throw forbidden('EMAIL_MISMATCH', 'The invitation is for another address, or your address is not confirmed');
  }
  const own = { _id: invite._id, usedBy: { $in: [null, user._id] }, usedAt: null };
  const claimed = await inviteStore(app).updateOne(own, { $set: { usedBy: user._id } });
  if (claimed.matchedCount === 0) throw inviteUnknown();
  const { roles } = invite;
  const welcomed =
    roles.length === 0
      ? user
      : await changeRoles(app, project, user, (present) => [...new Set([...present, ...roles])]);
  await storeDocument(app, project, user, invite);
  await inviteStore(app).updateOne(own, { $set: { usedAt: new Date(app.clock.now()) } });
  return welcomed;
}

async function storeDocument(app: App, project: Project, user: User, { set }: Invite): Promise<void> {
  if (!set) return;
  const collection = await requireCollection(app, project._id, set.collection);
  const document = readNewDocument(collection, fillIn(set.document, user._id), null, app.clock.now());
  try {
    await unlessDuplicate(insertDocumentRecord(app, collection, { ...document, _id: set.documentId }));
  } catch (error) {
    // A member already.
    if (!(error instanceof AppError) || error.code !== 'DUPLICATE_VALUE') throw error;
  }
}
