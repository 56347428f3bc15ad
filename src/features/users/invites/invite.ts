import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { missing, AppError, conflict, invalid, overLimit, forbidden } from '../../../errors.js';
import { storeOf, type WriteTurn } from '../../../platform/database/database.js';
import { findObjectId, randomToken, sha256Hex } from '../../../platform/ids.js';
import { arrayOf, MOMENT, object, TEXT } from '../../../platform/schema/schema.js';
import type { Project } from '../../projects/project.js';
import { DAY_MS } from '../../../platform/time/clock.js';
import { requireCollection } from '../../collections/collection-store.js';
import { requireRolesPlace, USERS } from '../../collections/users-collection.js';
import { readNewDocument } from '../../documents/write/new-document.js';
import { signInOf } from '../../projects/sign-in-settings.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { countMailTo } from '../codes/mail-allowance.js';
import { deliverToUser } from '../user-hooks.js';
import { isEmail, normaliseEmail } from '../credentials.js';
import { commitWrites, type DecidedWrite } from '../../documents/store/commit-writes.js';
import { openInsert } from '../../documents/write/insert-document.js';
import { openRoles } from '../accounts/user-roles.js';
import type { User } from '../user.js';

export const INVITES = 'invites';

/** An invitation of an address to a project (accounts.md 3), until it is accepted. */
interface Invite {
  /** SHA-256 of the token in the mail. */
  _id: string;
  /** Names it to the project's server, without the token. */
  id: ObjectId;
  projectId: ObjectId;
  email: string;
  roles: string[];
  /** The document to store, in which `=user.id` stands for the user. */
  set?: { collection: string; document: Record<string, unknown> };
  createdAt: Date;
  expiresAt: Date;
}

const inviteStore = storeOf<Invite>(INVITES);

function inviteUnknown(): AppError {
  return missing('INVITE_NOT_FOUND', 'The invitation is unknown, used, withdrawn or expired. Ask for a new one');
}

export const INVITE = object(
  { id: TEXT, email: TEXT, roles: arrayOf(TEXT), createdAt: MOMENT, expiresAt: MOMENT },
  'Invite',
);

const MAX_LISTED = 100;

/** The open invitations of a project, the newest first; at most 100, which is as many as there can be. */
export function listInvites(app: App, project: Pick<Project, '_id'>): Promise<Invite[]> {
  const open = { projectId: project._id, expiresAt: { $gt: new Date(app.clock.now()) } };
  return inviteStore(app).find(open).sort({ createdAt: -1, _id: -1 }).limit(MAX_LISTED).toArray();
}

/** Takes an open invitation back by one write; 404 INVITE_NOT_FOUND. */
export async function withdrawInvite(app: App, project: Pick<Project, '_id'>, invite: string): Promise<void> {
  const id = findObjectId(invite);
  const gone = id && (await inviteStore(app).findOneAndDelete({ projectId: project._id, id }));
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

const LIFETIME_MS = 7 * DAY_MS;
const MAX_OPEN = 100;

interface InviteInput {
  email: string;
  redirect: string;
  roles?: string[];
  set?: { collection: string; document: Record<string, unknown> };
  /** Who invites, as the mail says it. */
  inviterName?: string;
}

/** The document that an invitation stores for a user. */
function fillIn(document: Record<string, unknown>, userId: ObjectId): Record<string, unknown> {
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
  const open = { projectId: project._id, expiresAt: { $gt: new Date(now) } };
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
    ...(set && { set }),
    createdAt: new Date(now),
    expiresAt: new Date(now + LIFETIME_MS),
  };
  await insertServiceRecord(app, 'invites', invite);
  const inviteUrl = `${input.redirect}#${new URLSearchParams({ invite: token }).toString()}`;
  const variables = { projectName: project.name, inviterName: input.inviterName ?? 'The team', inviteUrl };
  await deliverToUser(app, project, { template: 'invite', to: email, variables }, { user: null, once: invite._id });
  return invite;
}

/** The open invitation of a token; 404 INVITE_NOT_FOUND. */
export async function requireInvite(app: App, project: Project, token: string): Promise<Invite> {
  const invite = await inviteStore(app).findOne({
    _id: sha256Hex(token),
    projectId: project._id,
    expiresAt: { $gt: new Date(app.clock.now()) },
  });
  if (!invite) throw inviteUnknown();
  return invite;
}

/**
 * Gives the user the roles of an invitation and stores its document, by the transaction that uses it up; who has the
 * document already gets the roles. Opens no session. 403 EMAIL_MISMATCH unless it is for the user's proven address.
 */
export async function acceptInvite(app: App, project: Project, user: User, token: string): Promise<User> {
  const { _id, email, roles, set } = await requireInvite(app, project, token);
  if (!user.emailVerified || user.email !== email) {
    throw forbidden('EMAIL_MISMATCH', 'The invitation is for another address, or your address is not confirmed');
  }
  const first: WriteTurn = {
    ...{ collection: INVITES, id: _id },
    run(stored) {
      if (!stored) throw inviteUnknown();
      return null;
    },
  };
  const join = (present: readonly string[]): string[] => [...new Set([...present, ...roles])];
  const granted = roles.length > 0 ? [await openRoles(app, project, user, join)] : [];
  const inserted = set ? [await openDocument(app, project, user, set)] : [];
  const [welcomed] = await commitWrites(app, [...granted, ...inserted], { first }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'DUPLICATE_VALUE') throw error;
    return commitWrites(app, granted, { first });
  });
  return granted.length > 0 ? (welcomed!.after as User) : user;
}

async function openDocument(
  app: App,
  project: Project,
  { _id }: User,
  { collection: name, document }: NonNullable<Invite['set']>,
): Promise<DecidedWrite> {
  const collection = await requireCollection(app, project._id, name);
  const filled = readNewDocument(collection, fillIn(document, _id), null, app.clock.now());
  return openInsert(app, { collection, writer: null }, filled);
}
