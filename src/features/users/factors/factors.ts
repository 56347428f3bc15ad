import { createHmac, randomBytes } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { documentsName } from '../../collections/collection.js';
import { defaultUsersCollection } from '../../collections/users-collection.js';
import type { Project } from '../../projects/project.js';
import { PROJECTS } from '../../projects/project-store.js';
import type { EncryptedPlace } from '../../../platform/secrets/reencrypt.js';
import { randomToken } from '../../../platform/ids.js';
import type { ServiceNotes } from '../../documents/store/document-store.js';
import type { Level } from '../../access/caller.js';
import { foldCode } from '../credentials.js';
import type { User } from '../user.js';
import { hasPasskey } from '../accounts/sign-in-methods.js';
import { toBase32 } from './totp.js';

const RECOVERY_CODES = 10;
const STAMP_BYTES = 12;
/** 50 bits of each code count. */
const RECOVERY_BYTES = 10;
const RECOVERY_CHARACTERS = 10;

/** True once the project's reset of the factors has taken effect, whether or not its job has come to it. */
export function isResetDue({ [HIDDEN_FIELD]: { mfaResetAt } }: User, nowMs: number): boolean {
  return Boolean(mfaResetAt && mfaResetAt.getTime() <= nowMs);
}

/** True if sign-ins of an account ask for a code. */
export function asksForCode(app: Pick<App, 'clock'>, user: User): boolean {
  return Boolean(user[HIDDEN_FIELD].totp) && !isResetDue(user, app.clock.now());
}

/** The level of proof that changes the ways into an account: that of its strongest factor (accounts.md 2). */
export async function findLevel(app: App, project: Project, user: User): Promise<Level> {
  if (isResetDue(user, app.clock.now())) return 1;
  return user[HIDDEN_FIELD].totp || (await hasPasskey(app, project, user)) ? 2 : 1;
}

/** The part of a write that takes all factors off an account, passkeys too: with it they are over. */
export function factorsEnd(): ServiceNotes {
  return { ...WITHOUT_TOTP, [`${HIDDEN_FIELD}.factorStamp`]: randomToken(STAMP_BYTES) };
}

/** The part that takes the app and its recovery codes off. */
export const WITHOUT_TOTP = {
  [`${HIDDEN_FIELD}.totp`]: null,
  [`${HIDDEN_FIELD}.totpPending`]: null,
  [`${HIDDEN_FIELD}.recovery`]: null,
  [`${HIDDEN_FIELD}.mfaResetAt`]: null,
} as const;

const encryptionContext = (userId: ObjectId): string => `user:${userId.toHexString()}:totp`;

/** The secret of a user's app as it is stored. */
export function encryptTotp(app: Pick<App, 'secrets'>, { _id }: Pick<User, '_id'>, secret: string): string {
  return app.secrets.encrypt(secret, encryptionContext(_id));
}

export function openTotp(app: Pick<App, 'secrets'>, { _id }: Pick<User, '_id'>, encrypted: string): string {
  return app.secrets.decrypt(encrypted, encryptionContext(_id));
}

/** Ten new codes, each good once, and how they are stored. */
export function generateRecoveryCodes(secret: string): { codes: string[]; hashes: string[] } {
  const codes = Array.from({ length: RECOVERY_CODES }, () => {
    const text = toBase32(randomBytes(RECOVERY_BYTES)).slice(0, RECOVERY_CHARACTERS).toLowerCase();
    return `${text.slice(0, 5)}-${text.slice(5)}`;
  });
  return { codes, hashes: codes.map((code) => hashRecoveryCode(secret, code)) };
}

/**
 * The stored form of a recovery code: keyed by the account's TOTP secret, which is encrypted and outlives a change of
 * the master key.
 */
export function hashRecoveryCode(secret: string, code: string): string {
  const plain = foldCode(code)
    .toLowerCase()
    .replace(/[^a-z2-7]/g, '');
  return createHmac('sha256', secret).update(`recovery ${plain}`).digest('base64url');
}

export const ENCRYPTED_TOTP: EncryptedPlace = {
  async collection(db) {
    const projects = await db
      .collection<{ _id: ObjectId }>(PROJECTS)
      .find({}, { projection: { _id: 1 } })
      .toArray();
    return projects.map(({ _id }) => documentsName(defaultUsersCollection(_id)));
  },
  filter: { [`${HIDDEN_FIELD}.totp`]: { $ne: null } },
  fields(record) {
    const { _id, [HIDDEN_FIELD]: notes } = record as User;
    const place = `${HIDDEN_FIELD}.totp.encrypted`;
    return notes.totp ? [{ path: place, encrypted: notes.totp.encrypted, context: encryptionContext(_id) }] : [];
  },
};
