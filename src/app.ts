import { SYSTEM, type Actor } from './platform/actor.js';
import { unavailable } from './errors.js';
import { FairLimiter } from './fair-limiter.js';
import type { Config } from './config/config.js';
import { openCache, type Cache } from './platform/cache.js';
import { openServiceClock, systemClock, type Clock, type ServiceClock } from './platform/time/clock.js';
import { openDatabase, type Database } from './platform/database/database.js';
import { openBackgroundTasks, type BackgroundTasks } from './platform/processes/background-tasks.js';
import { openJobQueue, type JobQueue } from './platform/jobs/job-queue.js';
import type { Logger } from './platform/observe/logger.js';
import { openMetrics, type Metrics } from './platform/observe/metrics.js';
import type { MailProvider } from './platform/mail-provider/mail-provider.js';
import { openObjectStores, type ObjectStores } from './platform/object-store/object-stores.js';
import { hasMasterKey, openMasterKey, requireSecretKey } from './platform/secrets/master-key.js';
import { findEncryptionKeys } from './platform/secrets/encryption-keys.js';
import { openOutbound, type Outbound } from './platform/network/outbound.js';
import { openPasswords, type Passwords } from './platform/secrets/password.js';
import { openLimits, type RateLimits } from './platform/rate-limit/open-limits.js';
import { openHints, openPubSub, type Hints } from './platform/processes/hints.js';
import { openOwnCode, type OwnCode } from './platform/processes/own-code.js';
import type { RedisConnection } from './platform/redis/redis.js';
import { openSecretBox, type SecretBox } from './platform/secrets/secret-box.js';
import { joinProcessGroup, type ProcessGroup } from './platform/processes/group-member.js';
import type { Telemetry } from './platform/observe/telemetry.js';
import { traceDatabase } from './platform/database/traced-database.js';
import { openOutbox } from './platform/mail-provider/outbox.js';
import { openResend } from './platform/mail-provider/resend.js';
import { openSmtp } from './platform/mail-provider/smtp.js';

/** The connected dependencies that use cases take as their first argument. */
export interface App {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: ServiceClock;
  readonly db: Database;
  readonly cache: Cache;
  readonly jobs: JobQueue;
  /** Counts requests of client addresses, together with all processes of the service. */
  readonly limits: RateLimits;
  /** Null without `REDIS_URL`. */
  readonly redis: RedisConnection | null;
  /** Null unless this process is one of several of a `serve`. */
  readonly processGroup: ProcessGroup | null;
  /** Wakes those who wait for changes, in all processes of the service. */
  readonly hints: Hints;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  /** Null unless an SDK of OpenTelemetry is there to record traces. */
  readonly telemetry: Telemetry | null;
  readonly backgroundTasks: BackgroundTasks;
  readonly outbound: Outbound;
  /** Processes of projects' own code; none is there until one is called. */
  readonly ownCode: OwnCode;
  readonly secrets: SecretBox;
  readonly passwords: Passwords;
  /** Places of aggregations: each may hold much memory. */
  readonly aggregations: FairLimiter;
  /** Bytes that large replies hold together until their clients have taken them. */
  readonly replies: FairLimiter;
  readonly files: ObjectStores;
  /** The service's own way of sending mail; a project with its own key has another. */
  readonly mail: MailProvider;
  /** On whose behalf: set for each request; the service itself otherwise. */
  readonly actor: Actor;
  /** Closes what openApp opened, in reverse order; safe to call twice. */
  close(): Promise<void>;
}

const AGGREGATIONS = {
  shares: { all: 4, project: 2, address: 2 },
  waiting: { all: 400, project: 200, address: 200 },
};

/** Opens the database and what hangs on it. Throws `unavailable` when the database cannot be reached. */
export async function openApp(
  config: Config,
  log: Logger,
  machineClock: Clock = systemClock,
  telemetry: Telemetry | null = null,
): Promise<App> {
  requireSecretKey(config);
  const clock = openServiceClock(machineClock);
  const opened = await openDatabase(config);
  const db = telemetry ? traceDatabase(opened, telemetry) : opened;
  const secrets = openSecretBox(config.secretKey ?? (await openOwnKey(config, db)));
  const backgroundTasks = openBackgroundTasks(log);
  const files = openObjectStores(config, secrets, clock);
  const outbound = openOutbound({ allowPrivate: config.webhookAllowPrivate, telemetry });
  const ownCode = openOwnCode(log, config.publicUrl);
  const redis = config.redisUrl ? await connectRedis(config.redisUrl, log) : null;
  const processGroup = joinProcessGroup();
  const pubSub = openPubSub(redis, processGroup);
  const limits = openLimits({ clock, log, redis, processGroup });
  const close = async (): Promise<void> => {
    ownCode.close();
    await backgroundTasks.idle();
    await limits.close();
    await redis?.close();
    await outbound.close();
    files.close();
    await db.close();
    await telemetry?.flush();
  };
  let closing: Promise<void> | null = null;
  return {
    config,
    log,
    clock,
    db,
    cache: openCache(pubSub),
    // Each process of a `serve` works off the queue itself; others are reached by Redis alone.
    jobs: openJobQueue(db, clock, redis && pubSub),
    limits,
    redis,
    processGroup,
    hints: openHints(pubSub, redis !== null || processGroup !== null),
    metrics: openMetrics(),
    readiness: openReadiness(),
    telemetry,
    backgroundTasks,
    outbound,
    ownCode,
    secrets,
    passwords: openPasswords(config.bcryptCost),
    // Idle connections are closed in the background.
    aggregations: new FairLimiter({ ...AGGREGATIONS, maxWaitMs: config.silenceTimeoutMs * 0.8 }),
    replies: openReplies(config.replyBudgetBytes),
    files,
    mail: openMailProvider(config, db, clock, secrets),
    actor: SYSTEM,
    close: () => (closing ??= close()),
  };
}

/** Others are answered although a project, or an address, reads its replies slowly. */
function openReplies(bytes: number): FairLimiter {
  return new FairLimiter({
    shares: { all: bytes, project: Math.floor(bytes / 2), address: Math.floor(bytes / 8) },
    waiting: { all: 400, project: 200, address: 100 },
    maxWaitMs: 10_000,
    refuse: () =>
      unavailable('BUSY', 'Too many large responses in progress. Try again in a moment, or request less at a time', {
        retryAfterSeconds: 1,
      }),
  });
}

/** The key of the data directory; a new one only for a store in which nothing is encrypted. */
async function openOwnKey({ dataDir }: Config, db: Database): Promise<() => string> {
  const mayMake = hasMasterKey(dataDir) || (await findEncryptionKeys(db)).length === 0;
  return openMasterKey(dataDir, mayMake);
}

/** Loaded only when it is wanted: most commands never need it. */
async function connectRedis(url: string, log: Logger): Promise<RedisConnection> {
  const { openRedis } = await import('./platform/redis/redis.js');
  return openRedis(url, log);
}

/** The state that a load balancer asks for before it sends requests: wanted or not. */
interface Readiness {
  isReady(): boolean;
  /** Ends readiness for good. */
  end(): void;
}

function openReadiness(): Readiness {
  let ready = true;
  return { isReady: () => ready, end: () => void (ready = false) };
}

/** The provider that the settings name, or the one whose setting is given, or the outbox. */
function openMailProvider(config: Config, db: Database, clock: Clock, secrets: SecretBox): MailProvider {
  const { mailProvider, resendApiKey, resendBaseUrl, smtpUrl } = config;
  if (resendApiKey && (mailProvider ?? 'resend') === 'resend') {
    return openResend({ apiKey: resendApiKey, baseUrl: resendBaseUrl });
  }
  if (smtpUrl && (mailProvider ?? 'smtp') === 'smtp') return openSmtp(smtpUrl);
  return openOutbox(db, clock, secrets);
}
