import { lifetime } from '../../../config/setting-readers.js';
import { FLAG, object, TEXT, text, type Schema } from '../../../platform/schema/schema.js';

/** When the documents of a collection go by themselves: some time after the moment that a field of theirs holds. */
export interface Expire {
  field: string;
  /** How long after that moment, such as `30d`; absent: at once. */
  after?: string;
  /** For good, not to the trash. */
  permanent?: boolean;
}

const DURATION = /^[1-9]\d{0,4}(s|m|h|d)$/;

/** As declarations and requests write it. */
export const EXPIRE: Schema<Expire> = object({
  field: TEXT,
  'after?': text({ pattern: DURATION.source }),
  'permanent?': FLAG,
});

/** Documents whose field holds this moment or an earlier one have expired. */
export function expiryCutoff({ after }: Expire, now: number): Date {
  return new Date(now - (after === undefined ? 0 : lifetime(after)));
}

/** As it is written at the command line: `createdAt after 30d permanently`. */
export function writeExpire({ field, after, permanent }: Expire): string {
  return `${field}${after === undefined ? '' : ` after ${after}`}${permanent ? ' permanently' : ''}`;
}

/** Reads what writeExpire writes; null for `off`. */
export function readExpire(written: string): Expire | null {
  if (written === 'off') return null;
  const [, field, after, permanently] = /^(\S+?)(?: after (\S+))?( permanently)?$/.exec(written) ?? [];
  if (field === undefined || (after !== undefined && !DURATION.test(after))) {
    throw new Error('must be a field, as expiresAt, "createdAt after 30d", "expiresAt permanently", or off');
  }
  return { field, ...(after !== undefined && { after }), ...(permanently !== undefined && { permanent: true }) };
}
