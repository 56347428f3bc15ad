import { randomInt, timingSafeEqual } from 'node:crypto';
import type { Document, ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { DAY_MS, CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { storeOf } from '../../../platform/database/store-of.js';
import type { Project } from '../../projects/project.js';
import { foldCode } from '../credentials.js';
import { keepRecord } from '../../quota/keep-record.js';
import type { Counted } from '../counters.js';
import { uncountMails } from './mail-allowance.js';
import type { Asker } from './tie-of-caller.js';

export const ONE_TIME_CODES = 'one_time_codes';

export const CODE_LIFETIME_MS = 5 * 60_000;
const COOLDOWN_MS = 60_000;
const MAX_TRIES = 5;
const MAX_TRIES_A_DAY = 30;
/** Of them for networks that did not ask for the code and from which the account is not signed in. */
const MAX_TRIES_OF_OTHERS = 3;
/** Of the day's for callers whom nothing ties to the account. */
const MAX_STRANGE_TRIES_A_DAY = 20;

/** The purpose of a code; `login` also proves once more who is signed in. */
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
  dayEndsAt?: Date;
  dayTries?: number;
}

export interface CodeEmail {
  purpose: CodePurpose;
  email: string;
  code: string;
  /** The page that the mail links to: it finds address and code behind `#`. */
  redirect?: string;
}

/** A letter that is to be mailed, and whose it is. */
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
  const now = app.clock.now();
  const id = codeId(app, projectId, purpose, email);
  // One from later than now was sent before the clock was set back; so was a day that ends later than one can.
  const cool = {
    $or: [{ sentAt: { $lte: new Date(now - COOLDOWN_MS) } }, { sentAt: { $gt: new Date(now + CLOCKS_DIFFER_MS) } }],
  };
  const recent = await codeStore(app).findOne({ _id: id, $nor: [cool] }, { projection: { sentAt: 1 } });
  if (recent) return { waitMs: Math.min(COOLDOWN_MS, recent.sentAt.getTime() + COOLDOWN_MS - now) };
  const counted = await mayMail();
  if (!counted) return null;
  const code = String(randomInt(0, 1_000_000)).padStart(6, '0');
  const letter: CodeEmail = { purpose, email, code, ...(redirect !== undefined && { redirect }) };
  const fresh = {
    projectId,
    codeHash: hashCode(app, id, code),
    encryptedEmail: app.secrets.encrypt(JSON.stringify(letter), encryptionContext(id)),
    tries: 0,
    sentAt: new Date(now),
    expiresAt: new Date(now + CODE_LIFETIME_MS),
    askedFrom: hashNetwork(app, network),
    ...(userId !== undefined && { userId }),
  };
  let isOpen = false;
  try {
    isOpen = await storeCode(app, id, fresh, cool);
  } finally {
    if (!isOpen) await uncountMails(app, counted);
  }
  // Another request was faster.
  return isOpen ? { id } : { waitMs: COOLDOWN_MS };
}

/** Stores a code in the place of one that is `cool`, if there is one; false when another request did so first. */
async function storeCode(
  app: App,
  id: string,
  fresh: Omit<OneTimeCode, '_id'>,
  cool: Record<string, unknown>,
): Promise<boolean> {
  const now = app.clock.now();
  const newDay = { dayEndsAt: new Date(now + DAY_MS), dayTries: 0 };
  if (await unlessDuplicate(keepRecord(app, 'codes', { _id: id, ...fresh, ...newDay }))) return true;
  const thisDay = { dayEndsAt: { $gt: new Date(now), $lte: new Date(now + DAY_MS + CLOCKS_DIFFER_MS) } };
  const next = await codeStore(app).updateOne({ _id: id, ...cool, ...thisDay }, { $set: fresh });
  if (next.matchedCount === 1) return true;
  const first = await codeStore(app).updateOne(
    { _id: id, ...cool, $nor: [thisDay] },
    { $set: { ...fresh, ...newDay } },
  );
  return first.matchedCount === 1;
}

/** The content of an open code's mail, or null when it was mailed or has expired. */
export async function findPendingEmail(app: App, id: string): Promise<PendingEmail | null> {
  const open = await codeStore(app).findOne({ _id: id });
  if (!open?.encryptedEmail || open.expiresAt.getTime() <= app.clock.now()) return null;
  const letter = JSON.parse(app.secrets.decrypt(open.encryptedEmail, encryptionContext(id))) as CodeEmail;
  return { ...letter, projectId: open.projectId, ...(open.userId && { userId: open.userId }) };
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

/** findCode with 400 OTP_INVALID for a wrong, spent, expired or never sent code alike. */
export async function checkCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  code: string,
  asker: Asker,
): Promise<CheckedCode> {
  const found = await findCode(app, project, purpose, email, code, asker);
  if (!found) throw codeInvalid();
  return found;
}

/**
 * Counts the try first, so that many guesses at once are five guesses, and no more than a few a day; null unless it is
 * the open code.
 */
export async function findCode(
  app: App,
  project: Project,
  purpose: CodePurpose,
  email: string,
  code: string,
  asker: Asker,
): Promise<CheckedCode | null> {
  const id = codeId(app, project._id, purpose, email);
  const open = await countTry(app, id, asker, { $inc: { tries: 1, dayTries: 1 } });
  if (!open || !isSameCode(app, id, code, open.codeHash)) return null;
  return {
    userId: open.userId ?? null,
    async spend() {
      // The record stays, so that the minute between two mails still counts; its hash goes.
      const spent = await codeStore(app).updateOne(
        { _id: id, codeHash: open.codeHash },
        { $set: { codeHash: '', tries: MAX_TRIES } },
      );
      return spent.modifiedCount === 1;
    },
  };
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
  const isRight = { $eq: ['$codeHash', { $literal: hashCode(app, id, code) }] };
  const open = await countTry(app, id, asker, [
    {
      $set: {
        tries: { $cond: [isRight, MAX_TRIES, { $add: ['$tries', 1] }] },
        dayTries: { $add: [{ $ifNull: ['$dayTries', 0] }, 1] },
        codeHash: { $cond: [isRight, '', '$codeHash'] },
      },
    },
  ]);
  if (!open || !isSameCode(app, id, code, open.codeHash)) throw codeInvalid();
}

/**
 * Counts a try by one write and answers the code as it was before; null for one that is unknown, expired or tried too
 * often. The last tries are for the network that asked for the code and for those tied to its account, so that a
 * stranger's guesses do not use up the owner's code.
 */
async function countTry(
  app: App,
  id: string,
  asker: Asker,
  update: Document | Document[],
): Promise<OneTimeCode | null> {
  const now = app.clock.now();
  const live = { $gt: new Date(now), $lte: new Date(now + CODE_LIFETIME_MS + CLOCKS_DIFFER_MS) };
  const triable = (tries: number, dayTries: number) => ({
    _id: id,
    expiresAt: live,
    tries: { $lt: tries },
    $nor: [{ dayTries: { $gte: dayTries } }],
  });
  const ofAsker = { ...triable(MAX_TRIES, MAX_STRANGE_TRIES_A_DAY), askedFrom: hashNetwork(app, asker.network) };
  const ofOthers = triable(MAX_TRIES_OF_OTHERS, MAX_STRANGE_TRIES_A_DAY);
  const counted = await codeStore(app).findOneAndUpdate({ $or: [ofAsker, ofOthers], _id: id }, update);
  if (counted || (await asker.findTie()) === 'stranger') return counted;
  return codeStore(app).findOneAndUpdate(triable(MAX_TRIES, MAX_TRIES_A_DAY), update);
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

function isSameCode(app: Pick<App, 'secrets'>, id: string, code: string, hash: string): boolean {
  const given = Buffer.from(hashCode(app, id, code));
  const stored = Buffer.from(hash);
  return given.length === stored.length && timingSafeEqual(given, stored);
}
