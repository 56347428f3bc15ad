import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/database.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { sha256Hex } from '../../../platform/ids.js';
import { conflict, missing, type AppError } from '../../../errors.js';
import { endSessions, sessionsEnd } from '../sessions/end-sessions.js';
import { accountChanged, requireUser } from '../user-store.js';
import { changeUser } from './change-user.js';

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

function findLinkRecords(app: App, project: Project, { _id }: Pick<User, '_id'>): Promise<LinkedIdentity[]> {
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
function markOf({ _id, createdAt }: { _id: string; createdAt: Date }): string {
  return `${_id}@${createdAt.getTime()}`;
}

export const PASSKEYS = 'passkeys';
export const MAX_PASSKEYS = 20;

/** A key pair of a user's device: the public half (accounts.md 3). */
export interface Passkey {
  /** Hash of project and credential id. */
  _id: string;
  projectId: ObjectId;
  userId: ObjectId;
  /** Base64url, as browsers name it. */
  credentialId: string;
  /** COSE, as base64url. */
  publicKey: string;
  /** Of uses, as far as the device counts them. */
  counter: number;
  transports: string[];
  /** Kept by a service of the user's, and so on several devices. */
  backedUp: boolean;
  name: string;
  /** The account's, when it was registered. */
  factorStamp?: string;
  createdAt: Date;
  usedAt: Date | null;
}

export const passkeyStore = storeOf<Passkey>(PASSKEYS);

export function passkeyId(project: Project, credentialId: string): string {
  return sha256Hex(JSON.stringify([project._id.toHexString(), credentialId]));
}

/** True if a passkey still opens the account: it is not an earlier owner's and not taken off. */
export function isPasskeyOf(passkey: Passkey, user: User): boolean {
  const { factorStamp, unlinked = [] } = user[HIDDEN_FIELD];
  return passkey.factorStamp === factorStamp && !unlinked.includes(markOf(passkey));
}

/** All records, those that no longer open the account too; the oldest first. */
export function findPasskeyRecords(app: App, project: Project, { _id }: Pick<User, '_id'>): Promise<Passkey[]> {
  return passkeyStore(app).find({ projectId: project._id, userId: _id }).sort({ createdAt: 1, _id: 1 }).toArray();
}

/** The passkeys that open the account, the oldest first. */
export async function listPasskeys(app: App, project: Project, user: User): Promise<Passkey[]> {
  return (await findPasskeyRecords(app, project, user)).filter((passkey) => isPasskeyOf(passkey, user));
}

export async function hasPasskey(app: App, project: Project, user: User): Promise<boolean> {
  return (await listPasskeys(app, project, user)).length > 0;
}

/** Removes the records of passkeys that open nothing any more: they are refused with or without their record. */
export async function removeDeadPasskeys(app: App, project: Project, user: User): Promise<void> {
  for (const passkey of await findPasskeyRecords(app, project, user)) {
    if (isPasskeyOf(passkey, user)) continue;
    await passkeyStore(app).deleteOne({ _id: passkey._id, userId: user._id, createdAt: passkey.createdAt });
  }
}

/** A passkey for its user. */
export function presentPasskey({ _id, name, createdAt, usedAt, backedUp }: Passkey) {
  return { id: _id, name, createdAt: createdAt.toISOString(), usedAt: usedAt?.toISOString() ?? null, backedUp };
}

const MAX_RACES = 5;

/**
 * Takes every identity of a provider off the account, and ends all sessions but `keepSession`, by one write of the
 * account. 404 IDENTITY_NOT_FOUND; 409 LAST_SIGN_IN_METHOD when neither a password nor another identity or passkey
 * would be left, however many are taken off at once.
 */
export function unlinkIdentity(
  app: App,
  project: Project,
  user: Pick<User, '_id'>,
  provider: string,
  keepSession: string | null,
): Promise<void> {
  const isGoing = (way: SignInMethod): boolean => 'provider' in way && way.provider === provider;
  const unknown = missing('IDENTITY_NOT_FOUND', 'The account has no identity of this provider');
  return takeOff(app, project, user, { isGoing, unknown, keepSession });
}

/** The same for one passkey, by its id: 404 PASSKEY_NOT_FOUND. */
export function removePasskey(
  app: App,
  project: Project,
  user: Pick<User, '_id'>,
  id: string,
  keepSession: string | null,
): Promise<void> {
  const isGoing = (way: SignInMethod): boolean => 'credentialId' in way && way._id === id;
  const unknown = missing('PASSKEY_NOT_FOUND', 'The account has no such passkey');
  return takeOff(app, project, user, { isGoing, unknown, keepSession });
}

type SignInMethod = LinkedIdentity | Passkey;

interface Going {
  isGoing: (way: SignInMethod) => boolean;
  unknown: AppError;
  keepSession: string | null;
}

async function takeOff(
  app: App,
  project: Project,
  { _id }: Pick<User, '_id'>,
  { isGoing, unknown, keepSession }: Going,
): Promise<void> {
  for (let race = 0; race < MAX_RACES; race++) {
    const user = await requireUser(app, project._id, _id.toHexString());
    const [links, passkeys] = [await findLinkRecords(app, project, user), await findPasskeyRecords(app, project, user)];
    const open = [
      ...links.filter((link) => isLinkOf(link, user)),
      ...passkeys.filter((passkey) => isPasskeyOf(passkey, user)),
    ];
    const going = open.filter(isGoing);
    if (going.length === 0) throw unknown;
    const { passwordHash, ownership, factorStamp, unlinked } = user[HIDDEN_FIELD];
    if (passwordHash === null && going.length === open.length) {
      throw conflict(
        'LAST_SIGN_IN_METHOD',
        'This is the account’s only sign-in method. Set a password (request-password-reset) or add another method first',
      );
    }
    const marks = [...links, ...passkeys].map(markOf);
    const changed = await changeUser(
      app,
      project,
      {
        _id,
        [`${HIDDEN_FIELD}.passwordHash`]: passwordHash,
        [`${HIDDEN_FIELD}.ownership`]: ownership ?? null,
        [`${HIDDEN_FIELD}.factorStamp`]: factorStamp ?? null,
        [`${HIDDEN_FIELD}.unlinked`]: unlinked ?? null,
      },
      {
        // Marks matter only while their record is there.
        [`${HIDDEN_FIELD}.unlinked`]: [
          ...(unlinked ?? []).filter((mark) => marks.includes(mark)),
          ...going.map(markOf),
        ],
        ...sessionsEnd(app, user, keepSession),
      },
    );
    if (!changed) continue;
    await endSessions(app, project, changed, 'account changed');
    await removeDeadLinks(app, project, changed);
    await removeDeadPasskeys(app, project, changed);
    return;
  }
  throw accountChanged();
}
