import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { conflict, invalid, overLimit } from '../../../errors.js';
import { randomToken, sha256Hex } from '../../../platform/ids.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import { requireCollection } from '../../collections/collection-store.js';
import { requireRolesPlace, USERS } from '../../collections/users-collection.js';
import { readNewDocument } from '../../documents/write/new-document.js';
import type { Project } from '../../projects/project.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { countMailTo } from '../codes/mail-allowance.js';
import { deliverToUser } from '../user-hooks.js';
import { isEmail, normaliseEmail } from '../credentials.js';
import { inviteStore, type Invite } from './invite.js';

const LIFETIME_MS = 7 * DAY_MS;
const MAX_OPEN = 100;

export interface InviteInput {
  email: string;
  redirect: string;
  roles?: string[];
  set?: { collection: string; document: Record<string, unknown> };
  /** Who invites, as the mail says it. */
  inviterName?: string;
}

/** The document that an invitation stores for a user. */
export function fillIn(document: Record<string, unknown>, userId: ObjectId): Record<string, unknown> {
  const own = userId.toHexString();
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, value === '=user.id' ? own : value]),
  );
}

/**
 * Stores an invitation for seven days and mails it. 400 for what is no address, REDIRECT_NOT_ALLOWED, and for a
 * document that its collection would refuse; 404 COLLECTION_NOT_FOUND; 409 ROLES_FIELD, TOO_MANY_INVITES; 429
 * INVITE_LIMIT for an address that has had its mails.
 */
export async function sendInvite(app: App, project: Project, input: InviteInput): Promise<Invite> {
  const email = normaliseEmail(input.email);
  if (!isEmail(email)) throw invalid('INVALID_EMAIL', `"${email.slice(0, 100)}" is not an e-mail address`);
  if (!signInOf(project).redirects.includes(input.redirect)) {
    throw invalid('REDIRECT_NOT_ALLOWED', 'This address is not one of the project’s redirect URLs');
  }
  const { roles = [], set } = input;
  if (roles.length > 0) requireRolesPlace((await requireCollection(app, project._id, USERS)).fields);
  const now = app.clock.now();
  if (set) {
    if (set.collection === USERS) throw invalid('INVALID_INVITE', 'An invitation cannot insert users');
    const collection = await requireCollection(app, project._id, set.collection);
    // Refused now, not when the invited person comes.
    readNewDocument(collection, fillIn(set.document, new ObjectId()), null, now);
  }
  const open = { projectId: project._id, usedAt: null, expiresAt: { $gt: new Date(now) } };
  if ((await inviteStore(app).countDocuments(open)) >= MAX_OPEN) {
    throw conflict('TOO_MANY_INVITES', `A project has at most ${MAX_OPEN} open invitations: withdraw some first`);
  }
  if (!(await countMailTo(app, project._id, email))) {
    throw overLimit('INVITE_LIMIT', 'Too many emails to this address. Try again later');
  }
  const token = randomToken(32);
  const invite: Invite = {
    _id: sha256Hex(token),
    id: new ObjectId(),
    projectId: project._id,
    email,
    roles,
    ...(set && { set: { ...set, documentId: new ObjectId() } }),
    createdAt: new Date(now),
    expiresAt: new Date(now + LIFETIME_MS),
    usedBy: null,
    usedAt: null,
  };
  await insertServiceRecord(app, 'invites', invite);
  const inviteUrl = `${input.redirect}#${new URLSearchParams({ invite: token }).toString()}`;
  const variables = { projectName: project.name, inviterName: input.inviterName ?? 'The team', inviteUrl };
  await deliverToUser(app, project, { template: 'invite', to: email, variables }, { user: null, once: invite._id });
  return invite;
}
