import { readFileSync } from 'node:fs';
import {
  address,
  cron,
  nameDatabase,
  trueOrFalse,
  hangTime,
  baseUrl,
  httpUrl,
  keepRule,
  lifetime,
  among,
  listContradictions,
  parseBytes,
  parseRate,
  patience,
  type SettingReader,
  replyBudget,
  asIs,
  wait,
  wholeWithin,
} from './setting-readers.js';

interface Setting<T> {
  /** Name of the environment variable; a secret can also come from the file named by `<NAME>_FILE`. */
  env: string;
  read: SettingReader<T>;
  default: T | null;
  /** The default as text in tables, where the value alone is not clear. */
  defaultText?: string;
  text: string;
  secret?: boolean;
}

function setting<T>(
  env: string,
  read: SettingReader<T>,
  fallback: T,
  about: string,
  more: Partial<Setting<T>> = {},
): Setting<T> & { default: T } {
  return { env, read, text: about, ...more, default: fallback };
}

function optional<T>(
  env: string,
  read: SettingReader<T>,
  about: string,
  more: Partial<Setting<T>> = {},
): Setting<T> & { default: null } {
  return { env, read, text: about, ...more, default: null };
}

/** The settings of the service: the guide's list, `bsvc settings` and loadConfig are made from this list. */
export const SETTINGS = {
  mongodbUri: optional(
    'MONGODB_URI',
    address('mongodb', 'mongodb+srv'),
    'MongoDB to use; none means the embedded engine',
    { secret: true },
  ),
  mongodbName: setting('BSVC_MONGODB_DB', asIs, 'bsvc', 'name of the database in that MongoDB', {
    defaultText: 'the path of MONGODB_URI, else bsvc',
  }),
  dataDir: setting('BSVC_DATA_DIR', asIs, './bsvc-data', 'engine files, local uploads, generated secrets'),
  durability: setting(
    'BSVC_DURABILITY',
    among('full', 'relaxed'),
    'full',
    'embedded engine: `full` survives power loss, `relaxed` may lose the last second',
  ),
  readerThreads: optional(
    'BSVC_READER_THREADS',
    (value) => (value === 'off' ? 0 : wholeWithin(0, 64)(value)),
    'embedded engine: threads of a serving process for reads that take long; `off` = none',
    { defaultText: 'processors − 1, at least 1, shared by BSVC_PROCESSES' },
  ),
  engineListen: optional(
    'BSVC_ENGINE_LISTEN',
    asIs,
    'where the embedded engine answers MongoDB’s wire protocol: `127.0.0.1:27027` or `unix:/path/name.sock`',
    { defaultText: 'off' },
  ),
  redisUrl: optional(
    'REDIS_URL',
    address('redis', 'rediss'),
    'Redis for limits, wake-ups and cache invalidation across machines',
    { secret: true },
  ),
  host: setting('BSVC_HOST', asIs, '127.0.0.1', 'address to listen on'),
  port: setting('BSVC_PORT', wholeWithin(0, 65_535), 4000, 'port to listen on; 0 = any free one'),
  workerPort: optional(
    'BSVC_WORKER_PORT',
    wholeWithin(0, 65_535),
    'port on which `bsvc worker` answers /metrics and /api/health; 0 = any free one',
    { defaultText: 'none' },
  ),
  publicUrl: optional('BSVC_PUBLIC_URL', baseUrl, 'address under which clients reach the service', {
    defaultText: 'from host and port',
  }),
  rateLimit: setting(
    'BSVC_RATE_LIMIT',
    parseRate,
    { count: 100, windowMs: 15 * 60_000 },
    'requests of one client address; `off` switches off',
    { defaultText: '100/15m' },
  ),
  authRateLimit: setting(
    'BSVC_AUTH_RATE_LIMIT',
    parseRate,
    { count: 20, windowMs: 15 * 60_000 },
    'sign-ins and the like of one client address, three times as many refreshes; `off` switches off',
    { defaultText: '20/15m' },
  ),
  trustProxy: setting(
    'BSVC_TRUST_PROXY',
    wholeWithin(0, 10),
    0,
    'number of proxies in front whose X-Forwarded-For entries count',
  ),
  secretKey: optional(
    'BSVC_SECRET_KEY',
    asIs,
    'master key that seals stored secrets; several, comma-separated, newest first',
    {
      secret: true,
      defaultText: 'generated into the data directory; required with `MONGODB_URI`',
    },
  ),
  accessTokenTtlMs: setting('BSVC_ACCESS_TOKEN_TTL', lifetime, 15 * 60_000, 'how long an access token works', {
    defaultText: '15m',
  }),
  refreshTokenTtlMs: setting(
    'BSVC_REFRESH_TOKEN_TTL',
    lifetime,
    7 * 86_400_000,
    'how long a session lasts after its last refresh',
    { defaultText: '7d' },
  ),
  bcryptCost: setting(
    'BSVC_BCRYPT_COST',
    wholeWithin(4, 15),
    10,
    'work factor of stored passwords: one more doubles it',
  ),
  console: setting('BSVC_CONSOLE', trueOrFalse, true, 'the operators’ console at /console', { defaultText: 'on' }),
  crossSiteCookies: setting(
    'BSVC_CROSS_SITE_COOKIES',
    trueOrFalse,
    false,
    'let pages of other sites use the refresh cookie (SameSite=None); needs an https BSVC_PUBLIC_URL',
  ),
  queryTimeoutMs: setting('BSVC_QUERY_TIMEOUT', wait, 10_000, 'how long one read of documents may take', {
    defaultText: '10s',
  }),
  aggregateLimit: setting(
    'BSVC_AGGREGATE_LIMIT',
    wholeWithin(1, 100_000),
    1000,
    'most documents that an aggregation may answer',
  ),
  changesKeepMs: setting('BSVC_CHANGES_KEEP', lifetime, 30 * 86_400_000, 'time changes are kept', {
    defaultText: '30d',
  }),
  streams: setting('BSVC_STREAMS', wholeWithin(1, 1_000_000), 10_000, 'clients of a process that wait for changes'),
  streamsPerAddress: setting(
    'BSVC_STREAMS_PER_ADDRESS',
    wholeWithin(1, 1_000_000),
    100,
    'streams of changes that one client address may have open in a process',
  ),
  trashDays: setting('BSVC_TRASH_DAYS', wholeWithin(0, 36_500), 30, 'days a trashed document is kept'),
  maxFileBytes: setting(
    'BSVC_MAX_FILE',
    parseBytes,
    10 * 1024 * 1024,
    'largest file in the service’s own storage; a project’s own bucket has no such cap',
    { defaultText: '10mb' },
  ),
  s3Endpoint: optional('BSVC_S3_ENDPOINT', httpUrl, 'address of the S3 service', {
    defaultText: 'AWS, when a bucket is named',
  }),
  s3Region: setting('BSVC_S3_REGION', asIs, 'us-east-1', 'region of the bucket (`auto` for R2)'),
  s3Bucket: optional('BSVC_S3_BUCKET', asIs, 'bucket for uploads; none means files in the data directory', {
    defaultText: 'local files',
  }),
  s3AccessKeyId: optional('BSVC_S3_ACCESS_KEY_ID', asIs, 'access key id for the bucket'),
  s3SecretAccessKey: optional('BSVC_S3_SECRET_ACCESS_KEY', asIs, 'secret access key for the bucket', { secret: true }),
  s3PublicUrl: optional(
    'BSVC_S3_PUBLIC_URL',
    httpUrl,
    'address under which the bucket’s objects are public; none means that replies carry no url',
  ),
  s3ForcePathStyle: setting(
    'BSVC_S3_FORCE_PATH_STYLE',
    trueOrFalse,
    false,
    'put the bucket’s name into the path instead of the host (MinIO and the like)',
  ),
  webhookAllowPrivate: setting(
    'BSVC_WEBHOOK_ALLOW_PRIVATE',
    trueOrFalse,
    false,
    'allow private addresses and plain http as targets that projects name: webhooks and buckets, and sign-in issuers named by operators of some projects (development)',
  ),
  mailProvider: optional('BSVC_MAIL_PROVIDER', among('outbox', 'resend', 'smtp'), 'who sends mail; `outbox` keeps it', {
    defaultText: '`resend` or `smtp` when their setting is given, else `outbox`',
  }),
  resendApiKey: optional('RESEND_API_KEY', asIs, 'key of the mail provider', { secret: true }),
  resendBaseUrl: optional('RESEND_BASE_URL', httpUrl, 'address of the mail provider', { defaultText: 'its own' }),
  smtpUrl: optional('BSVC_SMTP_URL', address('smtp', 'smtps'), 'mail server: `smtps://user:password@host:465`', {
    secret: true,
  }),
  mailFrom: optional('BSVC_MAIL_FROM', asIs, 'default sender: an address, or `Name <address>`'),
  mailRate: setting(
    'BSVC_MAIL_RATE',
    parseRate,
    { count: 2, windowMs: 1000 },
    'calls to the mail provider for each key',
    {
      defaultText: '2/1s',
    },
  ),
  backupTo: optional(
    'BSVC_BACKUP_TO',
    asIs,
    'where backups are kept by the schedule: a directory, or `s3://bucket/prefix` entered with BSVC_S3_*',
  ),
  backupSchedule: setting('BSVC_BACKUP_SCHEDULE', cron, '0 3 * * *', 'when backups are made (cron, UTC)'),
  backupKeep: setting(
    'BSVC_BACKUP_KEEP',
    keepRule,
    { days: 7, weeks: 4, months: 6 },
    'backups that are kept: the newest of so many days, weeks and months',
    { defaultText: '7d,4w,6m' },
  ),
  backupPassphrase: optional(
    'BSVC_BACKUP_PASSPHRASE',
    asIs,
    'seals kept backups; none means that the master key does',
    { secret: true },
  ),
  providerWebhookSecret: optional('PROVIDER_WEBHOOK_SECRET', asIs, 'checks the mail provider’s events', {
    secret: true,
  }),
  processes: setting('BSVC_PROCESSES', wholeWithin(1, 64), 1, 'processes of `bsvc serve` that share the port'),
  maxInFlight: setting(
    'BSVC_MAX_IN_FLIGHT',
    wholeWithin(1, 100_000),
    500,
    'requests that a process works on at once; as many again wait for a second, others are told to come back',
  ),
  replyBudgetBytes: setting(
    'BSVC_REPLY_BUDGET',
    replyBudget,
    128 * 1024 ** 2,
    'memory that a process gives to large replies under way, half of it at most to one project; beyond it requests wait their turn, then are told to come back',
    { defaultText: '128mb' },
  ),
  headersTimeoutMs: setting('BSVC_HEADERS_TIMEOUT', patience, 10_000, 'how long a client may take to send headers', {
    defaultText: '10s',
  }),
  requestTimeoutMs: setting(
    'BSVC_REQUEST_TIMEOUT',
    patience,
    300_000,
    'how long a client may take to send a whole request; ten megabytes in five minutes are 300 kbit/s',
    { defaultText: '5m' },
  ),
  silenceTimeoutMs: setting(
    'BSVC_SILENCE_TIMEOUT',
    patience,
    60_000,
    'how long a client may send and take nothing in the middle of a request',
    { defaultText: '60s' },
  ),
  stallTimeoutMs: setting(
    'BSVC_STALL_TIMEOUT',
    patience,
    10_000,
    'how long a client may take nothing of a reply that waits for it',
    { defaultText: '10s' },
  ),
  keepAliveTimeoutMs: setting(
    'BSVC_KEEP_ALIVE_TIMEOUT',
    patience,
    65_000,
    'how long an unused connection stays open; longer than a proxy in front keeps its own',
    { defaultText: '65s' },
  ),
  drainMs: setting(
    'BSVC_DRAIN',
    wait,
    1_000,
    'how long a stopping process that has clients goes on serving while it says that it is not ready; longer than a load balancer needs to notice',
    { defaultText: '1s' },
  ),
  shutdownGraceMs: setting(
    'BSVC_SHUTDOWN_GRACE',
    wait,
    10_000,
    'how long a stopping process waits for what is under way',
    { defaultText: '10s' },
  ),
  watchdogMs: setting(
    'BSVC_WATCHDOG',
    hangTime,
    30_000,
    'how long the main thread of `serve` or `worker` may hang before the process ends itself, to be restarted; `off` switches off',
    { defaultText: '30s' },
  ),
  adminToken: optional('BSVC_ADMIN_TOKEN', asIs, 'bearer for the operators’ API from scripts', { secret: true }),
  logLevel: setting(
    'BSVC_LOG_LEVEL',
    among('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'least severe log line to write',
  ),
  logFormat: optional('BSVC_LOG_FORMAT', among('json', 'text'), 'form of log lines', {
    defaultText: 'JSON off a terminal',
  }),
  verbose: setting('BSVC_DEBUG', trueOrFalse, false, 'print stacks of unexpected errors on the command line'),
};

type Settings = typeof SETTINGS;
type ValueOf<S extends Setting<unknown>> = ReturnType<S['read']> | Extract<S['default'], null>;

/** The service's configuration: frozen, complete, read once at the process edge and passed down. */
export type Config = Readonly<{ [Name in keyof Settings]: ValueOf<Settings[Name]> }>;
export type SettingName = keyof Settings;

export interface SettingSource {
  name: SettingName;
  /** `flag`, `environment`, a file's name, or `default`. */
  source: string;
}

/** All problems of a configuration at once, one line each. */
export class ConfigError extends Error {
  readonly problems: string[];
  constructor(problems: string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** One layer of raw texts by environment name, for example the flags of a command or an env file. */
export interface ConfigLayer {
  source: string;
  values: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads the settings from the layers, first one wins; throws one ConfigError that lists every problem. Unset and empty
 * count alike.
 */
export function loadConfig(layers: readonly ConfigLayer[]): { config: Config; sources: SettingSource[] } {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const sources: SettingSource[] = [];
  for (const [name, entry] of Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]) {
    const found = findRaw(entry, layers, problems);
    values[name] = entry.default;
    sources.push({ name, source: found?.source ?? 'default' });
    if (!found) continue;
    try {
      values[name] = entry.read(found.raw);
    } catch (error) {
      problems.push(`${entry.env} ${(error as Error).message}${entry.secret ? '' : ` (got "${found.raw}")`}`);
    }
  }
  const named = sources.some(({ name, source }) => name === 'mongodbName' && source !== 'default');
  if (problems.length === 0) values.mongodbName = nameDatabase(values as Config, named, problems);
  const config = Object.freeze(values) as Config;
  if (problems.length === 0) problems.push(...listContradictions(config));
  if (problems.length > 0) throw new ConfigError(problems);
  return { config, sources };
}

function findRaw(
  entry: Setting<unknown>,
  layers: readonly ConfigLayer[],
  problems: string[],
): { raw: string; source: string } | null {
  for (const layer of layers) {
    const raw = layer.values[entry.env];
    if (raw) return { raw, source: layer.source };
    const file = entry.secret ? layer.values[`${entry.env}_FILE`] : undefined;
    if (!file) continue;
    try {
      return { raw: readFileSync(file, 'utf8').trim(), source: `${layer.source} (${entry.env}_FILE)` };
    } catch {
      problems.push(`${entry.env}_FILE names ${file}, which cannot be read`);
      return null;
    }
  }
  return null;
}
