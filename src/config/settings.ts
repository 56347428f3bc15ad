import {
  s3Url,
  defaulted,
  optional,
  address,
  addressOfOneHost,
  among,
  asIs,
  baseUrl,
  cron,
  hangTime,
  httpUrl,
  keepRule,
  lifetime,
  memoryBudget,
  parseBytes,
  parseRate,
  trueOrFalse,
  wait,
  wholeWithin,
} from './setting-readers.js';

/** Where data is stored. */
export const STORE_SETTINGS = {
  mongodbUri: optional(
    'MONGODB_URI',
    address('mongodb', 'mongodb+srv'),
    'MongoDB connection string; its path is the database name (default: bsvc). Without it, the embedded database is used',
    { secret: true },
  ),
  dataDir: defaulted(
    'BSVC_DATA_DIR',
    asIs,
    './bsvc-data',
    'directory for the embedded database, uploads and generated secrets',
  ),
  durability: defaulted(
    'BSVC_DURABILITY',
    among('full', 'relaxed'),
    'full',
    'embedded database: `full` survives power loss, `relaxed` may lose the last second',
  ),
  engineListen: optional(
    'BSVC_ENGINE_LISTEN',
    asIs,
    'serve MongoDB’s wire protocol of the embedded database: `127.0.0.1:27027` or `unix:/path/name.sock`',
    { defaultText: 'off' },
  ),
  redisUrl: optional(
    'REDIS_URL',
    addressOfOneHost('redis', 'rediss'),
    'Redis for rate limits, wake-ups and cache invalidation across machines',
    { secret: true },
  ),
};

/** The settings of the service: the guide's list, `bsvc settings` and loadConfig are made from this list. */
export const SETTINGS = {
  ...STORE_SETTINGS,

  // Where the service listens, and how many requests one address may send.
  host: defaulted(
    'BSVC_HOST',
    asIs,
    '127.0.0.1',
    'address to listen on, or `unix:/run/bsvc.sock` for a socket that a proxy of the same group may open',
  ),
  port: defaulted(
    'BSVC_PORT',
    wholeWithin(0, 65_535),
    4000,
    'port to listen on; 0 = any free one; unset, it is `PORT` of the environment, as hosting platforms set it',
    { otherEnv: 'PORT' },
  ),
  publicUrl: optional('BSVC_PUBLIC_URL', baseUrl, 'public URL of the server', {
    defaultText: 'from host and port',
  }),
  publicDir: optional('BSVC_PUBLIC_DIR', asIs, 'folder of a front end to serve at `/`'),
  publicSpa: defaulted(
    'BSVC_PUBLIC_SPA',
    trueOrFalse,
    false,
    'serve index.html for unknown pages, for front ends with client-side routing',
  ),
  rateLimit: defaulted(
    'BSVC_RATE_LIMIT',
    parseRate,
    { count: 100, windowMs: 15 * 60_000 },
    'rate limit of anonymous requests per client address; a signed-in user gets 30 times as many, from any address; `off` disables both',
    { defaultText: '100/15m' },
  ),
  secretRateLimit: defaulted(
    'BSVC_SECRET_RATE_LIMIT',
    parseRate,
    null,
    'rate limit of a project’s requests with the secret key, whatever the address',
    { defaultText: 'off' },
  ),
  authRateLimit: defaulted(
    'BSVC_AUTH_RATE_LIMIT',
    parseRate,
    { count: 20, windowMs: 15 * 60_000 },
    'rate limit of sign-ups and sign-ins per client address, three times as many refreshes; `off` disables it',
    { defaultText: '20/15m' },
  ),
  anonymousRateLimit: defaulted(
    'BSVC_ANONYMOUS_RATE_LIMIT',
    parseRate,
    { count: 5, windowMs: 15 * 60_000 },
    'rate limit of new anonymous users per client address; `off` disables it',
    { defaultText: '5/15m' },
  ),
  trustProxy: defaulted(
    'BSVC_TRUST_PROXY',
    wholeWithin(0, 10),
    0,
    'number of proxies in front of the server; as many X-Forwarded-For entries are trusted',
  ),

  // Keys, tokens, passwords, the console.
  secretKey: optional(
    'BSVC_SECRET_KEY',
    asIs,
    'master key that encrypts stored secrets; several, comma-separated, newest first',
    {
      secret: true,
      defaultText: 'generated into the data directory; required with `MONGODB_URI`',
    },
  ),
  accessTokenTtlMs: defaulted('BSVC_ACCESS_TOKEN_TTL', lifetime, 15 * 60_000, 'lifetime of access tokens', {
    defaultText: '15m',
  }),
  refreshTokenTtlMs: defaulted(
    'BSVC_REFRESH_TOKEN_TTL',
    lifetime,
    7 * 86_400_000,
    'lifetime of a session after its last refresh',
    { defaultText: '7d' },
  ),
  bcryptCost: defaulted(
    'BSVC_BCRYPT_COST',
    wholeWithin(4, 15),
    10,
    'bcrypt cost of passwords: one more doubles the time of a sign-in',
  ),
  console: defaulted('BSVC_CONSOLE', trueOrFalse, true, 'serve the console at /console', { defaultText: 'on' }),
  crossSiteCookies: defaulted(
    'BSVC_CROSS_SITE_COOKIES',
    trueOrFalse,
    false,
    'allow other sites to use the refresh cookie (SameSite=None); needs an https BSVC_PUBLIC_URL',
  ),

  // Reads of documents, the trash, logs.
  queryTimeoutMs: defaulted('BSVC_QUERY_TIMEOUT', wait, 10_000, 'maximum time of a query', {
    defaultText: '10s',
  }),
  trashDays: defaulted('BSVC_TRASH_DAYS', wholeWithin(0, 36_500), 30, 'days until documents in the trash are deleted'),
  keepMs: defaulted(
    'BSVC_KEEP',
    lifetime,
    30 * 86_400_000,
    'retention of change logs, email logs and failed webhook deliveries; delivered ones for at most three days',
    { defaultText: '30d' },
  ),

  // Files, the bucket, and the addresses that projects may name.
  maxFileBytes: defaulted(
    'BSVC_MAX_FILE',
    parseBytes,
    10 * 1024 * 1024,
    'maximum file size; unlimited in a project’s own bucket',
    { defaultText: '10mb' },
  ),
  s3: optional(
    'BSVC_S3_URL',
    s3Url,
    'bucket for uploads: `s3://key:secret@host/bucket?region=…`, without `key:secret@` it uses the role of this machine or container; without a bucket it is only the account for BSVC_BACKUP_TO',
    { secret: true, defaultText: 'local files' },
  ),
  webhookAllowPrivate: defaulted(
    'BSVC_WEBHOOK_ALLOW_PRIVATE',
    trueOrFalse,
    false,
    'development: allow private addresses and plain http for webhooks, buckets, and sign-in issuers that operators of some projects set',
  ),

  // Mail and its provider.
  mailProvider: optional(
    'BSVC_MAIL_PROVIDER',
    among('outbox', 'resend', 'smtp'),
    'email provider; `outbox` stores emails instead of sending them',
    {
      defaultText: '`resend` or `smtp` when their setting is given, else `outbox`',
    },
  ),
  resendApiKey: optional('RESEND_API_KEY', asIs, 'API key of Resend', { secret: true }),
  resendBaseUrl: optional('RESEND_BASE_URL', httpUrl, 'URL of the Resend API', { defaultText: 'that of Resend' }),
  smtpUrl: optional('BSVC_SMTP_URL', address('smtp', 'smtps'), 'mail server: `smtps://user:password@host:465`', {
    secret: true,
  }),
  mailFrom: optional('BSVC_MAIL_FROM', asIs, 'default sender: an address, or `Name <address>`'),
  mailRate: defaulted(
    'BSVC_MAIL_RATE',
    parseRate,
    { count: 2, windowMs: 1000 },
    'rate of calls to the email provider per key',
    {
      defaultText: '2/1s',
    },
  ),
  providerWebhookSecret: optional('PROVIDER_WEBHOOK_SECRET', asIs, 'verifies webhooks of the email provider', {
    secret: true,
  }),

  // Backups that are made by a schedule.
  backupTo: optional(
    'BSVC_BACKUP_TO',
    asIs,
    'target of scheduled backups: a directory, or `s3://bucket/prefix` in the account of BSVC_S3_URL',
  ),
  backupSchedule: defaulted('BSVC_BACKUP_SCHEDULE', cron, '0 3 * * *', 'schedule of backups (cron, UTC)'),
  backupKeep: defaulted(
    'BSVC_BACKUP_KEEP',
    keepRule,
    { days: 7, weeks: 4, months: 6 },
    'backups to keep: the newest of this many days, weeks and months',
    { defaultText: '7d,4w,6m' },
  ),
  backupPassphrase: optional(
    'BSVC_BACKUP_PASSPHRASE',
    asIs,
    'passphrase that encrypts scheduled backups; without it the master key does',
    { secret: true },
  ),

  // Processes: what they work on at once, how long they wait, what they log.
  processes: defaulted('BSVC_PROCESSES', wholeWithin(1, 64), 1, 'processes that `bsvc serve` starts'),
  memoryBytes: defaulted(
    'BSVC_MEMORY',
    memoryBudget,
    256 * 1024 ** 2,
    'memory of a process for request bodies, large responses and subscriptions; it also sets how many run at once',
    { defaultText: '256mb' },
  ),
  drainMs: defaulted(
    'BSVC_DRAIN',
    wait,
    1_000,
    'how long a stopping process still serves while /api/health/ready fails; longer than your load balancer’s check',
    { defaultText: '1s' },
  ),
  watchdogMs: optional(
    'BSVC_WATCHDOG',
    hangTime,
    'how long `serve` or `worker` may hang before the process exits, to be restarted; `off` disables it',
    {
      defaultText: '30s under systemd, a container platform or `--processes`; else ten minutes later, after a log line',
    },
  ),
  hooksDir: optional(
    'BSVC_HOOKS_DIR',
    asIs,
    'folder with a folder of own code for each project, by its name; without it files stay where `bsvc hook add` found them',
  ),
  adminToken: optional('BSVC_ADMIN_TOKEN', asIs, 'bearer token for the operators’ API and /metrics', { secret: true }),
  logLevel: defaulted(
    'BSVC_LOG_LEVEL',
    among('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'log level; `debug` also prints stack traces of unexpected errors of commands',
  ),
  logFormat: optional('BSVC_LOG_FORMAT', among('json', 'text'), 'format of log lines', {
    defaultText: 'JSON off a terminal',
  }),
};
