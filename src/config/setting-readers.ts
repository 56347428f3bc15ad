export interface Setting<T> {
  /** Name of the environment variable; a secret can also come from the file named by `<NAME>_FILE`. */
  env: string;
  /** Of a variable of the environment that others set, and that counts where ours is not set. */
  otherEnv?: string;
  read: SettingReader<T>;
  default: T | null;
  /** The default as text in tables, where the value alone is not clear. */
  defaultText?: string;
  text: string;
  secret?: boolean;
}

/** A setting with a default. */
export function defaulted<T>(
  env: string,
  read: SettingReader<T>,
  fallback: T,
  about: string,
  more: Partial<Setting<T>> = {},
): Setting<T> & { default: T } {
  return { env, read, text: about, ...more, default: fallback };
}

/** A setting that may be left out: null then. */
export function optional<T>(
  env: string,
  read: SettingReader<T>,
  about: string,
  more: Partial<Setting<T>> = {},
): Setting<T> & { default: null } {
  return { env, read, text: about, ...more, default: null };
}

/** Text -> value, or an Error whose message completes "<NAME> ...". */
type SettingReader<T> = (text: string) => T;

/** `100/15m`: a number of requests and the time in which they count. */
export interface Rate {
  count: number;
  windowMs: number;
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const UNIT_BYTES: Record<string, number> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/** A hundred years: added to or taken from any moment it still gives a date. */
export const MAX_DURATION_MS = 36_500 * 86_400_000;

/** Reads `15m`, `30d`, `500ms` as milliseconds; more than a hundred years count as a hundred. */
export function parseDuration(text: string): number {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  if (!match) throw new Error('must be a duration such as 500ms, 30s, 15m, 12h or 7d');
  return Math.min(Number(match[1]) * UNIT_MS[match[2]!]!, MAX_DURATION_MS);
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

export const asIs: SettingReader<string> = (value) => value;

const between =
  (least: string, most: string): SettingReader<number> =>
  (value) => {
    const ms = parseDuration(value);
    if (ms < parseDuration(least) || ms > parseDuration(most)) throw new Error(`must be from ${least} to ${most}`);
    return ms;
  };

export const lifetime = between('1s', '36500d');
/** A timer that is set for more than 2^31 milliseconds ends at once. */
export const wait = between('0s', '24d');
/** Long enough for whatever honest work keeps the event loop, or `off` as Infinity. */
export const hangTime: SettingReader<number> = (value) => {
  if (value === 'off') return Infinity;
  try {
    return between('1s', '24d')(value);
  } catch (error) {
    throw new Error(`${(error as Error).message}, or off`);
  }
};

/** With less, two projects could not have one large reply each. */
const MIN_MEMORY_BUDGET = 128 * 1024 ** 2;

export const memoryBudget: SettingReader<number> = (value) => {
  const bytes = parseBytes(value);
  if (bytes < MIN_MEMORY_BUDGET) throw new Error('must be 128mb or more');
  return bytes;
};

export const address =
  (...schemes: string[]): SettingReader<string> =>
  (value) => {
    const beginnings = schemes.map((scheme) => `${scheme}://`);
    if (!beginnings.some((beginning) => value.startsWith(beginning) && value !== beginning)) {
      throw new Error(`must start with ${beginnings.join(' or ')}`);
    }
    return value;
  };

/** The same of a server that has one host: lists of hosts, as for a MongoDB, are refused. */
export const addressOfOneHost =
  (...schemes: string[]): SettingReader<string> =>
  (value) => {
    const checked = address(...schemes)(value);
    if (!URL.canParse(checked)) throw new Error('must name one host, as in redis://user:password@host:6379');
    return checked;
  };

/**
 * The database that the address of a MongoDB names in its path, else `bsvc`; `admin` is where users are kept, and never
 * where data goes.
 */
export function databaseInAddress(uri: string): string {
  const path = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^?]*)/.exec(uri)?.[1] ?? '';
  // An escape that is none is for the driver to refuse, with the rest of the address.
  const name = /^(?:[^%]|%[0-7][\dA-Fa-f])*$/.test(path) ? decodeURIComponent(path) : path;
  return name === '' || name === 'admin' ? 'bsvc' : name;
}

export const trueOrFalse: SettingReader<boolean> = (value) => {
  if (['true', '1', 'yes', 'on'].includes(value.toLowerCase())) return true;
  if (['false', '0', 'no', 'off'].includes(value.toLowerCase())) return false;
  throw new Error('must be true or false');
};

export const wholeWithin =
  (least: number, most: number): SettingReader<number> =>
  (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < least || number > most) {
      throw new Error(`must be a whole number from ${least} to ${most}`);
    }
    return number;
  };

export const among =
  <const T extends string>(...choices: T[]): SettingReader<T> =>
  (value) => {
    if (!choices.includes(value as T)) throw new Error(`must be one of ${choices.join(', ')}`);
    return value as T;
  };

export const httpUrl: SettingReader<string> = (value) => {
  if (!/^https?:$/.test(URL.canParse(value) ? new URL(value).protocol : '')) {
    throw new Error('must be an http(s) address');
  }
  return value.replace(/\/+$/, '');
};

/** An address that paths are put behind. */
export const baseUrl: SettingReader<string> = (value) => {
  const address = httpUrl(value);
  if (/[?#]/.test(address)) throw new Error('must be an http(s) address without ? and #: paths are put behind it');
  return address;
};

const CRON_RANGES = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;

/** A cron expression of five fields in figures: minute, hour, day, month, weekday. */
export const cron: SettingReader<string> = (value) => {
  const fields = value.trim().split(/\s+/);
  const isGood =
    fields.length === CRON_RANGES.length && fields.every((field, at) => isCronField(field, CRON_RANGES[at]!));
  if (!isGood) throw new Error('must be a cron expression of five fields in figures, such as 0 3 * * *');
  return fields.join(' ');
};

function isCronField(field: string, [least, most]: readonly [number, number]): boolean {
  return field.split(',').every((part) => {
    const match = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part);
    if (!match) return false;
    const [, from, to, step] = match.map((text) => (text === undefined ? undefined : Number(text)));
    const isWithin = (number: number | undefined): boolean =>
      number === undefined || (number >= least && number <= most);
    return isWithin(from) && isWithin(to) && (to === undefined || from! <= to) && step !== 0;
  });
}

/** `7d,4w,6m`: the newest backup of each of the last 7 days, 4 weeks and 6 months; a unit left out keeps none. */
export const keepRule: SettingReader<{ days: number; weeks: number; months: number }> = (value) => {
  const rule = { days: 0, weeks: 0, months: 0 };
  const names = { d: 'days', w: 'weeks', m: 'months' } as const;
  for (const part of value.split(',')) {
    const match = /^(\d{1,3})([dwm])$/.exec(part.trim());
    if (!match) throw new Error('must name days, weeks and months, as in 7d,4w,6m');
    rule[names[match[2] as keyof typeof names]] = Number(match[1]);
  }
  if (rule.days + rule.weeks + rule.months === 0) throw new Error('must keep at least one, as in 7d');
  return rule;
};

/** Contradictions between settings that are each valid. */
export function listContradictions(config: {
  mailProvider: string | null;
  resendApiKey: string | null;
  smtpUrl: string | null;
}): string[] {
  const { mailProvider, resendApiKey, smtpUrl } = config;
  if (mailProvider === 'resend' && !resendApiKey) {
    return ['BSVC_MAIL_PROVIDER is resend, but RESEND_API_KEY is not set'];
  }
  if (mailProvider === 'smtp' && !smtpUrl) return ['BSVC_MAIL_PROVIDER is smtp, but BSVC_SMTP_URL is not set'];
  return [];
}

const SHOWN_UNITS = [
  [86_400_000, 'd', 'day'],
  [3_600_000, 'h', 'hour'],
  [60_000, 'm', 'minute'],
  [1000, 's', 'second'],
] as const;
const SMALLEST_UNIT = [1, 'ms', 'millisecond'] as const;

const unitOf = (ms: number) => SHOWN_UNITS.find(([size]) => ms % size === 0) ?? SMALLEST_UNIT;

/** The shortest exact text in the form of settings: 900000 is `15m`. */
export function presentDuration(ms: number): string {
  const [unitMs, unit] = unitOf(ms);
  return `${ms / unitMs}${unit}`;
}

/** The same in words: 900000 is `15 minutes`, 1000 `1 second`. */
export function formatDuration(ms: number): string {
  const [unitMs, , unit] = unitOf(ms);
  return ms === unitMs ? `1 ${unit}` : `${ms / unitMs} ${unit}s`;
}

/** An account at an S3 service, with the bucket for uploads if one is named. */
interface S3Account {
  /** Null for AWS, which has an address for each region. */
  endpoint: string | null;
  region: string;
  bucket: string | null;
  /** Both null: the role of this machine or container, or what else the SDK of AWS finds in its environment. */
  accessKeyId: string | null;
  secretAccessKey: string | null;
  publicUrl: string | null;
  forcePathStyle: boolean;
}

const AWS = 's3.amazonaws.com';
const FORM =
  'must be s3://key:secret@host/bucket?region=…, with %2F for a / in the secret, or without key and secret for the role of this machine; s3+http:// for a host without TLS';
const OPTIONS = ['region', 'public', 'path-style'];

/**
 * Reads `s3://key:secret@host/bucket?region=…&public=https://…&path-style=true`. The bucket may be missing: an account
 * for backups only. So may key and secret, but not one of them.
 */
export const s3Url: SettingReader<S3Account> = (value) => {
  const url = /^s3(\+http)?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : null;
  if (!url || !url.host || (url.username === '') !== (url.password === '')) throw new Error(FORM);
  const unknown = [...url.searchParams.keys()].find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new Error(`has the option ${unknown}, which is none of ${OPTIONS.join(', ')}`);
  const bucket = url.pathname.replace(/^\/|\/$/g, '');
  if (bucket.includes('/')) throw new Error(FORM);
  const publicUrl = url.searchParams.get('public');
  return {
    endpoint: url.host === AWS ? null : `${url.protocol === 's3+http:' ? 'http' : 'https'}://${url.host}`,
    region: url.searchParams.get('region') ?? 'us-east-1',
    bucket: bucket === '' ? null : bucket,
    accessKeyId: decode(url.username) || null,
    secretAccessKey: decode(url.password) || null,
    publicUrl: publicUrl === null ? null : httpUrl(publicUrl),
    forcePathStyle: trueOrFalse(url.searchParams.get('path-style') ?? 'false'),
  };
};

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(FORM);
  }
}
