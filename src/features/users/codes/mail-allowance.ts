import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { randomToken } from '../../../platform/ids.js';
import { CLOCKS_DIFFER_MS, DAY_MS } from '../../../platform/time/clock.js';

export const MAIL_COUNTS = 'mail_counts';

const HOUR_MS = 60 * 60_000;
/** Mails of all kinds together that requests may cause to an address (accounts.md 9). */
export const MAX_MAILS_A_DAY = 10;
/** Of them within an hour, to an address that has not shown to be the caller's. */
export const MAX_MAILS_AN_HOUR = 3;
/** Between two mails that one account causes by asking for another address. */
const ACCOUNT_PAUSE_MS = 60_000;
const MAIL_ID_BYTES = 9;

/** When mails were sent lately: to an address, or on behalf of an account. */
interface MailCount {
  /** Keyed hash of project and address, or of project and account. */
  _id: string;
  projectId: ObjectId;
  /** The newest first, at most MAX_MAILS_A_DAY. */
  sent: { at: Date; id: string }[];
  expiresAt: Date;
}

const countStore = storeOf<MailCount>(MAIL_COUNTS);

/** How many mails may be counted within which time. */
interface Allowance {
  count: number;
  withinMs: number;
}

const A_DAY: Allowance = { count: MAX_MAILS_A_DAY, withinMs: DAY_MS };
const AN_HOUR: Allowance = { count: MAX_MAILS_AN_HOUR, withinMs: HOUR_MS };

/**
 * What ties a caller to an address: a session of its account (`owner` once the address is proven, else `known`), a
 * network from which the account is signed in (`known`), or nothing. The last mails of an hour and of a day are not for
 * strangers, so that nobody can use up the mails of another person.
 */
export type Tie = 'owner' | 'known' | 'stranger';

const ALLOWANCES: Readonly<Record<Tie, readonly Allowance[]>> = {
  owner: [A_DAY],
  known: [A_DAY, AN_HOUR],
  stranger: [
    { ...A_DAY, count: 7 },
    { ...AN_HOUR, count: 2 },
  ],
};

/** A mail that was counted, so that it can be taken back when it is not sent after all. */
export interface CountedMail {
  /** The record, and the mail's entry in it. */
  of: string;
  id: string;
}

/** Counts a mail to an address; null, with nothing counted, when it may have no more now. */
export function countMailTo(
  app: App,
  projectId: ObjectId,
  address: string,
  tie: Tie = 'known',
): Promise<CountedMail | null> {
  return count(app, projectId, ['address', address], ALLOWANCES[tie]);
}

/** Counts a mail that an account causes to an address which is not its own; null when it may cause no more now. */
export function countMailOf(app: App, projectId: ObjectId, userId: ObjectId): Promise<CountedMail | null> {
  return count(app, projectId, ['account', userId.toHexString()], [A_DAY, { count: 1, withinMs: ACCOUNT_PAUSE_MS }]);
}

async function count(
  app: App,
  projectId: ObjectId,
  of: readonly [string, string],
  allowances: readonly Allowance[],
): Promise<CountedMail | null> {
  const now = app.clock.now();
  const _id = app.secrets.mac('mail-count', JSON.stringify([projectId.toHexString(), ...of]));
  const free = allowances.map(({ count: most, withinMs }) => {
    const last = `sent.${most - 1}.at`;
    return {
      $or: [
        { [last]: { $exists: false } },
        { [last]: { $lte: new Date(now - withinMs) } },
        // Counted before the clock was set back.
        { [last]: { $gt: new Date(now + CLOCKS_DIFFER_MS) } },
      ],
    };
  });
  const record = { projectId, expiresAt: new Date(now + DAY_MS + CLOCKS_DIFFER_MS) };
  const store = countStore(app);
  const mail = { at: new Date(now), id: randomToken(MAIL_ID_BYTES) };
  const counted: CountedMail = { of: _id, id: mail.id };
  for (;;) {
    const added = await store.updateOne(
      { _id, $and: free },
      { $set: record, $push: { sent: { $each: [mail], $position: 0, $slice: MAX_MAILS_A_DAY } } },
    );
    if (added.matchedCount === 1) return counted;
    if (await store.findOne({ _id }, { projection: { _id: 1 } })) return null;
    if (await unlessDuplicate(store.insertOne({ _id, ...record, sent: [mail] }))) return counted;
  }
}

/** Takes counted mails back that were not sent. Harmless to repeat. */
export async function uncountMails(app: App, mails: readonly CountedMail[]): Promise<void> {
  for (const { of, id } of mails) await countStore(app).updateOne({ _id: of }, { $pull: { sent: { id } } });
}
