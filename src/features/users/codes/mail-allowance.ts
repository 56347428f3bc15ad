import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { CLOCKS_DIFFER_MS, DAY_MS } from '../../../platform/time/clock.js';

export const MAIL_COUNTS = 'mail_counts';

const HOUR_MS = 60 * 60_000;
/** Mails of all kinds together that requests may cause to an address (accounts.md 9). */
export const MAX_MAILS_A_DAY = 10;
/** Of them within an hour, to an address that has not shown to be the caller's. */
export const MAX_MAILS_AN_HOUR = 3;
/** Between two mails that one account causes by asking for another address. */
const ACCOUNT_PAUSE_MS = 60_000;

/** When mails were sent lately: to an address, or on behalf of an account. */
interface MailCount {
  /** Keyed hash of project and address, or of project and account. */
  _id: string;
  projectId: ObjectId;
  /** The newest first, at most MAX_MAILS_A_DAY. */
  sent: Date[];
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

/** Counts a mail to an address; false, with nothing counted, when it may have no more now. */
export function countMailTo(
  app: App,
  projectId: ObjectId,
  address: string,
  { isCallers = false }: { isCallers?: boolean } = {},
): Promise<boolean> {
  return count(app, projectId, ['address', address], isCallers ? [A_DAY] : [A_DAY, AN_HOUR]);
}

/** Counts a mail that an account causes to an address which is not its own; false when it may cause no more now. */
export function countMailOf(app: App, projectId: ObjectId, userId: ObjectId): Promise<boolean> {
  return count(app, projectId, ['account', userId.toHexString()], [A_DAY, { count: 1, withinMs: ACCOUNT_PAUSE_MS }]);
}

async function count(
  app: App,
  projectId: ObjectId,
  of: readonly [string, string],
  allowances: readonly Allowance[],
): Promise<boolean> {
  const now = app.clock.now();
  const _id = app.secrets.mac('mail-count', JSON.stringify([projectId.toHexString(), ...of]));
  const free = allowances.map(({ count: most, withinMs }) => {
    const last = `sent.${most - 1}`;
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
  for (;;) {
    const counted = await store.updateOne(
      { _id, $and: free },
      { $set: record, $push: { sent: { $each: [new Date(now)], $position: 0, $slice: MAX_MAILS_A_DAY } } },
    );
    if (counted.matchedCount === 1) return true;
    if (await store.findOne({ _id }, { projection: { _id: 1 } })) return false;
    if (await unlessDuplicate(store.insertOne({ _id, ...record, sent: [new Date(now)] }))) return true;
  }
}
