import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { sha256Hex } from '../../../platform/ids.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';
import { markOf } from './linked-identity.js';

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
