import { randomInt, timingSafeEqual } from 'node:crypto';
import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { DAY_MS, isToCome } from '../../../platform/time/clock.js';
import { unlessDuplicate, storeOf } from '../../../platform/database/database.js';
import type { Project } from '../../projects/project.js';
import { foldCode } from '../credentials.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import type { Counted } from '../counters.js';
import { uncountMails, type Asker } from './mail-allowance.js';

export const ONE_TIME_CODES = 'one_time_codes';

export const CODE_LIFETIME_MS = 5 * 60_000;
const COOLDOWN_MS = 60_000;
const MAX_TRIES = 5;
const MAX_TRIES_A_DAY = 30;
/** Of them for networks that did not ask for the code and from which the account is not signed in. */
const MAX_TRIES_OF_OTHERS = 3;
/** Of the day's for callers whom nothing ties to the account. */
const MAX_STRANGE_TRIES_A_DAY = 20;

/** The purpose of a code; `login` is also used for re-authentication. */
export type CodePurpose = 'verification' | 'password-reset' | 'email-change' | 'login';

/**
 * The one open code for a purpose and an address, whether or not an account has that address: only the mail makes the
 * difference.
 */
interface OneTimeCode {
  /** Keyed hash of project, purpose and address. */
  _id: string;
  projectId: ObjectId;
  /** Keyed hash of the six digits; a plain one would be undone by trying a million. */
  codeHash: string;
  /** The content to mail, encrypted; removed as soon as the mail is queued. */
  encryptedEmail?: string;
  tries: number;
  sentAt: Date;
  expiresAt: Date;
  /** The account that is to have the address, for a change of it. */
  userId?: ObjectId;
  /** Keyed hash of the network that asked for it. */
  askedFrom: string;
  /** Tries are counted until this moment, then from zero. */
  dayEndsAt: Date;
  dayTries: number;
  updatedAt: Date;
}

export interface CodeEmail {
  purpose: CodePurpose;
  email: string;
  code: string;
  /** The page that the mail links to: it finds address and code behind `#`. */
  redirect?: string;
}

/** A mail that is to be mailed, and whose it is. */
export type PendingEmail = CodeEmail & Pick<OneTimeCode, 'projectId' | 'userId'>;

/** A new code under the id of its record; the time until one may be asked for again; null when no mail may go out. */
export type OpenedCode = { id: string } | { waitMs: number } | null;

const codeStore = storeOf<OneTimeCode>(ONE_TIME_CODES);

/**
 * Puts a new code in the place of an older one, unless that was sent within the last minute or `mayMail` says that no
 * mail may go out. The older one stands then: a stranger who asks too often does not end it.
 */
export async function openCode(
  app: App,
  projectId: ObjectId,
  purpose: CodePurpose,
  email: string,
  mayMail: () => Promise<readonly Counted[] | null>,
  { network, userId, redirect }: { network: string; userId?: ObjectId; redirect?: string },
): Promise<OpenedCode> {
  const id = codeId(app, projectId, purpose, email);
  const waitMs = coolIn(app, await codeStore(app).findOne({ _id: id }, { projection: { sentAt: 1 } }));
  if (waitMs > 0) return { waitMs };
  const counted = await mayMail();
  if (!counted) return null;
  const code = String(randomInt(0, 1_000_000)).padStart(6, '0');
  const mail: CodeEmail = { purpose, email, code, ...(redirect !== undefined && { redirect }) };
  const now = app.clock.now();
  const fresh = {
    ...{ _id: id, projectId, dayEndsAt: new Date(now + DAY_MS), dayTries: 0, updatedAt: new Date(now) },
    codeHash: hashCode(app, id, code),
    encryptedEmail: app.secrets.encrypt(JSON.stringify(mail), encryptionContext(id)),
    tries: 0,
    sentAt: new Date(now),
    expiresAt: new Date(now + CODE_LIFETIME_MS),
    askedFrom: hashNetwork(app, network),
    ...(userId !== undefined && { userId }),
  };
  let isOpen = false;
  try {
    isOpen = await storeCode(app, fresh);
  } finally {
    if (!isOpen) await uncountMails(app, counted);
  }
  // Another request was faster.
  return isOpen ? { id } : { waitMs: COOLDOWN_MS };
}

/** How long a code keeps another one from taking its place. */
function coolIn(app: App, code: Pick<OneTimeCode, 'sentAt'> | null): number {
  const nowMs = app.clock.now();
  const endMs = (code?.sentAt.getTime() ?? 0) + COOLDOWN_MS;
  return isToCome(endMs, COOLDOWN_MS, nowMs) ? Math.min(COOLDOWN_MS, endMs - nowMs) : 0;
}

/** Stores a code in the place of an older one, if there is one; false when another request did so first. */
async function storeCode(app: App, fresh: OneTimeCode): Promise<boolean> {
  if (await unlessDuplicate(insertServiceRecord(app, 'codes', fresh))) return true;
  let isStored = false;
  await changeCode(app, fresh._id, (known) => {
    isStored = coolIn(app, known) <= 0;
    if (!isStored) return known;
    const isSameDay = isToCome(known.dayEndsAt.getTime(), DAY_MS, app.clock.now());
    return isSameDay ? { ...fresh, dayEndsAt: known.dayEndsAt, dayTries: known.dayTries } : fresh;
  });
  return isStored;
}

/** Changes a code that is there by one read and one write, as often as it takes. */
async function changeCode(app: App, id: string, change: (known: OneTimeCode) => OneTimeCode): Promise<void> {
  await app.db.transform(ONE_TIME_CODES, id, (stored) => {
    const known = stored as OneTimeCode | null;
    const changed = known && change(known);
    if (!known || changed === known) return stored;
    return { ...changed, updatedAt: new Date(Math.max(app.clock.now(), known.updatedAt.getTime() + 1)) };
  });
}

/** The content of an open code's mail, or null when it was mailed or has expired. */
export async function findPendingEmail(app: App, id: string): Promise<PendingEmail | null> {
  const open = await codeStore(app).findOne({ _id: id });
  if (!open?.encryptedEmail || open.expiresAt.getTime() <= app.clock.now()) return null;
  const mail = JSON.parse(app.secrets.decrypt(open.encryptedEmail, encryptionContext(id))) as CodeEmail;
  return { ...mail, projectId: open.projectId, ...(open.userId && { userId: open.userId }) };
}

/** Forgets what was needed for the mail only. */
export async function forgetPendingEmail(app: App, id: string): Promise<void> {
  await codeStore(app).updateOne({ _id: id }, { $unset: { encryptedEmail: '' } });
}

/** The account that last asked for this address, if any did in the last days. */
export async function findCodeUser(app: App, project: Project, address: string): Promise<ObjectId | null> {
  const open = await codeStore(app).findOne({
    _id: codeId(app, project._id, 'email-change', address),
  });
  return open?.userId ?? null;
}

/** A code that was found right but is not spent yet. */
export interface CheckedCode {
  /** The account that is to have the address, for a change of it. */
  userId: ObjectId | null;
  /** Spends it; false when another request was faster. */
  spend(): Promise<boolean>;
}

/** The record stays, so that the minute between two mails still counts; its hash goes. */
const SPENT = { codeHash: '', tries: MAX_TRIES };

/** findCode with 400 OTP_INVALID for a wrong, spent, expired or never sent code alike. */
export async function checkCode(...given: Parameters<typeof findCode>): Promise<CheckedCode> {
  const found = await findCode(...given);
  if (!found) throw codeInvalid();
  return found;
}

/** Counts a try; null unless it is the open code. */
export async function findCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  code: string,
  asker: Asker,
): Promise<CheckedCode | null> {
  const open = await tryCode(app, codeId(app, project._id, purpose, email), code, asker, {});
  return (
    open && {
      userId: open.userId ?? null,
      async spend() {
        let isSpent = false;
        await changeCode(app, open._id, (known) => {
          isSpent = known.codeHash === open.codeHash;
          return isSpent ? { ...known, ...SPENT } : known;
        });
        return isSpent;
      },
    }
  );
}

/** checkCode that spends the code by the very write which counts the try. */
export async function takeCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  code: string,
  asker: Asker,
): Promise<void> {
  const id = codeId(app, project._id, purpose, email);
  if (!(await tryCode(app, id, code, asker, SPENT))) throw codeInvalid();
}

/**
 * Counts a try before it is compared, so that many guesses at once are five guesses, and no more than a few a day;
 * answers the code as it was before and makes `changes` where it is the right one, null where it is wrong, unknown,
 * expired or tried too often. The last tries are for the network that asked for the code and for those tied to its
 * account, so that other people's guesses do not use up the owner's code.
 */
async function tryCode(
  app: App,
  id: string,
  code: string,
  asker: Asker,
  changes: Partial<OneTimeCode>,
): Promise<OneTimeCode | null> {
  const codeHash = hashCode(app, id, code);
  const network = hashNetwork(app, asker.network);
  let counted: OneTimeCode | null = null;
  const count = (isTied: boolean): Promise<void> =>
    changeCode(app, id, (known) => {
      const isAsker = isTied || known.askedFrom === network;
      const isTriable =
        isToCome(known.expiresAt.getTime(), CODE_LIFETIME_MS, app.clock.now()) &&
        known.tries < (isAsker ? MAX_TRIES : MAX_TRIES_OF_OTHERS) &&
        known.dayTries < (isTied ? MAX_TRIES_A_DAY : MAX_STRANGE_TRIES_A_DAY);
      counted = isTriable ? known : null;
      if (!isTriable) return known;
      const tried = { ...known, tries: known.tries + 1, dayTries: known.dayTries + 1 };
      return isSame(codeHash, known.codeHash) ? { ...tried, ...changes } : tried;
    });
  await count(false);
  if (!counted && (await asker.findTie()) !== 'stranger') await count(true);
  const { codeHash: right = '' } = (counted ?? {}) as Partial<OneTimeCode>;
  return isSame(codeHash, right) ? counted : null;
}

function hashNetwork(app: Pick<App, 'secrets'>, network: string): string {
  return app.secrets.mac('one-time-code-network', network);
}

export function codeInvalid(): Error {
  return invalid('OTP_INVALID', 'The code is wrong, already used or expired');
}

function codeId(app: App, projectId: ObjectId, purpose: CodePurpose, email: string): string {
  return app.secrets.mac('one-time-code', JSON.stringify([projectId.toHexString(), purpose, email]));
}

const encryptionContext = (id: string): string => `one-time-code:${id}`;

function hashCode(app: Pick<App, 'secrets'>, id: string, code: string): string {
  return app.secrets.mac('one-time-code-digits', `${id}.${foldCode(code)}`);
}

function isSame(hash: string, stored: string): boolean {
  const [one, other] = [Buffer.from(hash), Buffer.from(stored)];
  return one.length === other.length && timingSafeEqual(one, other);
}
