import { startWatchdog } from '../../src/platform/processes/watchdog.js';
import type { Context } from '../shell/context.js';
import { HANG_MS, isShare } from './serve-processes.js';
import { chooseLogFormat } from '../shell/settings.js';
import { once } from 'node:events';
import type { Database } from '../../src/platform/database/database.js';
import { ConfigError, type Config } from '../../src/config/config.js';
import type { App } from '../../src/app.js';
import { removeLeftWorkFolders } from '../../src/platform/processes/work-folder.js';

/** Without a supervisor, a process that may recover is better than one that has exited. */
const LEFT_ALONE_MS = 10 * 60_000;

/**
 * True if this process is known to be restarted: the supervisor of several processes, systemd, or the platform
 * of a container, whose first process it is.
 */
function isSupervised(context: Context): boolean {
  if (isShare() || process.pid === 1) return true;
  // A shell inside a systemd session has the first of them too, but another process.
  const { INVOCATION_ID: ofUnit, SYSTEMD_EXEC_PID: started } = context.io.env;
  return ofUnit !== undefined && (started === undefined || started === String(process.pid));
}

/**
 * Does the work of a long-running command under the eyes of a watchdog: opening the store is part of it, since that can
 * wait for a lock too.
 */
export async function withWatchdog(context: Context, work: () => Promise<void>): Promise<void> {
  const { config } = context.settings();
  const patienceMs = config.watchdogMs ?? HANG_MS;
  const stop = startWatchdog({
    patienceMs: patienceMs === Infinity ? null : patienceMs,
    graceMs: config.watchdogMs !== null || isSupervised(context) ? 0 : LEFT_ALONE_MS,
    endWithParent: isShare(),
    format: chooseLogFormat(context.io, config),
  });
  try {
    await work();
  } finally {
    stop();
  }
}

/**
 * Resolves when the process is asked to stop. A closed stdout does not count: a service goes on without a reader.
 * Rejects with STORE_REPLACED when its store is gone, with STORE_FAILED when a write has failed so that only a new
 * process can go on: whatever keeps the service running starts one.
 */
export async function waitForStop({ io: { stop } }: Context, db: Database): Promise<void> {
  if (stop.aborted) return;
  const gone = new Promise<never>((_, reject) => {
    db.onLost(reject);
  });
  await Promise.race([once(stop, 'abort'), gone]);
}

const MIN_KEY_CHARACTERS = 16;
const MIN_TOKEN_CHARACTERS = 12;

/**
 * Refuses to serve with a master key or an operators' token that can be guessed. Throws one ConfigError that lists
 * them.
 */
export function requireStrongSecrets({ secretKey, adminToken }: Config): void {
  const problems = [
    // Older keys only open what was encrypted with them; the first one encrypts.
    describe('BSVC_SECRET_KEY', secretKey?.split(',')[0]?.trim() ?? null, MIN_KEY_CHARACTERS),
    describe('BSVC_ADMIN_TOKEN', adminToken, MIN_TOKEN_CHARACTERS),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) throw new ConfigError(problems);
}

function describe(name: string, secret: string | null, leastCharacters: number): string | null {
  const weakness = secret === null ? null : findWeakness(secret, leastCharacters);
  return weakness && `${name} ${weakness}: set a random one, for example from "openssl rand -base64 32"`;
}

/**
 * Removes what killed processes left before this one begins: half-written uploads and work folders of backups. Nothing
 * of it keeps a service from starting.
 */
export async function removeStaleFiles(app: App): Promise<void> {
  await app.files
    .sweepSpool()
    .catch((error: unknown) => app.log.warn({ err: error }, 'half-written uploads could not be removed'));
  await removeLeftWorkFolders();
}

const MIN_DISTINCT = 5;

// Secrets found in examples; compared without case, signs and a number behind.
const SAMPLES = new Set(
  'admin admintoken adminsecret changeme changemeplease changethis default example examplekey examplesecret keyboardcat mysecret mysecretkey mytoken password placeholder replaceme sample secret secretkey supersecret supersecretkey test testsecret testtoken token yoursecret yoursecretkey yoursecretkeyhere yoursecrethere yourtoken yourtokenhere yourkeyhere'.split(
    ' ',
  ),
);

/** Why a secret can be guessed, in words that follow its name; null when nothing speaks against it. */
export function findWeakness(secret: string, leastCharacters: number): string | null {
  const word = secret
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .replace(/\d+$/, '');
  if (SAMPLES.has(word)) return 'is one that is found in examples';
  if (secret.length < leastCharacters) return `is shorter than ${leastCharacters} characters`;
  if (new Set(secret).size < MIN_DISTINCT) return 'repeats the same few characters';
  return null;
}
