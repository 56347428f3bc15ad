/** Text -> value, or an Error whose message completes "<NAME> ...". */
export type Reader<T> = (text: string) => T;

/** `100/15m`: so many within so long. */
export interface Rate {
  count: number;
  windowMs: number;
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const UNIT_BYTES: Record<string, number> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/** A hundred years: added to or taken from any moment it still gives a date. */
const LONGEST_MS = 36_500 * 86_400_000;

/** Reads `15m`, `30d`, `500ms` as milliseconds; more than a hundred years count as a hundred. */
export function parseDuration(text: string): number {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  if (!match) throw new Error('must be a duration such as 500ms, 30s, 15m, 12h or 7d');
  return Math.min(Number(match[1]) * UNIT_MS[match[2]!]!, LONGEST_MS);
}

/** Reads `10mb`, `512kb` or a bare number of bytes. */
export function parseBytes(text: string): number {
  const match = /^(\d+)(b|kb|mb|gb)?$/i.exec(text);
  if (!match) throw new Error('must be a size such as 512kb or 10mb');
  return Number(match[1]) * UNIT_BYTES[(match[2] ?? 'b').toLowerCase()]!;
}

/** Reads `100/15m`, or `off` as null. */
export function parseRate(text: string): Rate | null {
  if (text === 'off') return null;
  const [count, window, ...rest] = text.split('/');
  if (!count || !/^[1-9]\d{0,8}$/.test(count) || !window || rest.length > 0) {
    throw new Error('must be a rate such as 100/15m, or off');
  }
  const windowMs = parseDuration(window);
  if (windowMs === 0) throw new Error('must count within some time, as in 100/15m');
  return { count: Number(count), windowMs };
}

export const text: Reader<string> = (value) => value;

const between =
  (least: string, most: string): Reader<number> =>
  (value) => {
    const ms = parseDuration(value);
    if (ms < parseDuration(least) || ms > parseDuration(most)) throw new Error(`must be from ${least} to ${most}`);
    return ms;
  };

export const lifetime = between('1s', '36500d');
/** A timer that is set for more than 2^31 milliseconds ends at once. */
export const wait = between('0s', '24d');
/** At least long enough for an honest client on a slow line to be heard. */
export const patience = between('100ms', '24d');
/** Long enough for whatever honest work keeps the event loop, or `off` as null. */
export const hangTime: Reader<number | null> = (value) => {
  if (value === 'off') return null;
  try {
    return between('1s', '24d')(value);
  } catch (error) {
    throw new Error(`${(error as Error).message}, or off`);
  }
};

/** Less than this would not let two projects have one large reply each. */
const LEAST_REPLY_BUDGET = 64 * 1024 ** 2;

export const replyBudget: Reader<number> = (value) => {
  const bytes = parseBytes(value);
  if (bytes < LEAST_REPLY_BUDGET) throw new Error('must be 64mb or more');
  return bytes;
};

export const address =
  (...schemes: string[]): Reader<string> =>
  (value) => {
    const beginnings = schemes.map((scheme) => `${scheme}://`);
    if (!beginnings.some((beginning) => value.startsWith(beginning) && value !== beginning))
      throw new Error(`must start with ${beginnings.join(' or ')}`);
    return value;
  };

export const flag: Reader<boolean> = (value) => {
  if (['true', '1', 'yes', 'on'].includes(value.toLowerCase())) return true;
  if (['false', '0', 'no', 'off'].includes(value.toLowerCase())) return false;
  throw new Error('must be true or false');
};

export const wholeNumber =
  (least: number, most: number): Reader<number> =>
  (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < least || number > most) {
      throw new Error(`must be a whole number from ${least} to ${most}`);
    }
    return number;
  };

export const oneOf =
  <const T extends string>(...choices: T[]): Reader<T> =>
  (value) => {
    if (!choices.includes(value as T)) throw new Error(`must be one of ${choices.join(', ')}`);
    return value as T;
  };

export const httpUrl: Reader<string> = (value) => {
  if (!/^https?:$/.test(URL.canParse(value) ? new URL(value).protocol : ''))
    throw new Error('must be an http(s) address');
  return value.replace(/\/+$/, '');
};
