import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { App } from '../../src/app.js';
import type { Config } from '../../src/config/config.js';
import { listCollections } from '../../src/features/collections/collection-store.js';
import {
  applyIndexes,
  documentIndexes,
  listMissingIndexes,
} from '../../src/features/collections/indexes/document-indexes.js';
import { recountStorage } from '../../src/features/files/usage-store.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { findMigrationStatus, rejectNewerStore } from '../../src/migrations/migrate.js';
import { rejectHalfStore } from '../../src/migrations/require-migrated.js';
import { ENCRYPTED_PLACES } from '../../src/features/store-copies/rotate-secrets.js';
import { placeCollections, type EncryptedField, type EncryptedPlace } from '../../src/platform/secrets/reencrypt.js';
import { requireSecretKey } from '../../src/platform/secrets/master-key.js';
import { requireEncryptionKeys } from '../../src/platform/secrets/encryption-keys.js';
import { failed, passed, unreachable, type CheckResult } from './check.js';
import type { Context } from '../shell/context.js';
import { checkChanges, checkClock, checkBackups } from './check-upkeep.js';
import { checkExposed, checkAccessRules } from './check-access.js';
import { checkStore } from './check-data.js';
import { checkRetained } from './retained-data.js';
import { checkCache, checkListener, checkMail } from './check-neighbours.js';
import { EXIT, presentFailure } from '../view/exit.js';
import { countOf, presentBytes } from '../view/present.js';
import { formatDuration, type Rate } from '../../src/config/setting-readers.js';
import { isIPv4 } from 'node:net';
import { checkBucket, SOME_ORIGIN, type BucketCheck } from '../../src/features/files/bucket/check-bucket.js';

/** The number of records of a kind that are searched for one that holds a secret. */
const SAMPLED_RECORDS = 50;
const MIN_FREE_BYTES = 256 * 1024 * 1024;

/**
 * The checks of `bsvc doctor`, in the order in which they build on each other: without settings, or without a database,
 * the rest is left out.
 */
export async function diagnose(context: Context, options: { fix: boolean }): Promise<CheckResult[]> {
  const checks: CheckResult[] = [
    passed('node', `Node.js ${process.versions.node} on ${process.platform} ${process.arch}`),
  ];
  let config: Config;
  try {
    const settings = context.settings();
    config = settings.config;
    requireSecretKey(config);
    const given = settings.sources.filter(({ source }) => source !== 'default').length;
    checks.push(passed('settings', `${given} given, ${settings.sources.length - given} by default`));
  } catch (error) {
    return [...checks, failed('settings', presentFailure(error).message, 'Correct them; "bsvc settings" lists all.')];
  }
  checks.push(await checkDataDir(config));
  // They wait for different machines, so they wait together.
  const [stored, cache, mail, listener] = await Promise.all([
    checkDatabase(context, config, options),
    checkCache(config),
    checkMail(config),
    checkListener(config),
  ]);
  return [...checks, ...stored, cache, checkLimits(config), mail, ...listener, ...checkConsole(config)];
}

async function checkDataDir({ dataDir, mongodbUri }: Config): Promise<CheckResult> {
  const found = await stat(dataDir).catch(() => null);
  if (!found) {
    if (await canBeMade(dataDir)) {
      return passed('data directory', `${dataDir} does not exist yet; it is created on first use`);
    }
    return failed('data directory', `${dataDir} cannot be created`, 'Choose another with --data-dir or BSVC_DATA_DIR.');
  }
  if (!found.isDirectory()) {
    return failed('data directory', `${dataDir} is not a directory`, 'Choose another with --data-dir.');
  }
  if (!(await isWritable(dataDir))) {
    return failed('data directory', `${dataDir} cannot be written`, 'Give this user the right to write to it.');
  }
  const { bavail, bsize } = await statfs(dataDir);
  const free = `${presentBytes(bavail * bsize)} free`;
  // All that is wrong, as one hides the other otherwise.
  const problems: [detail: string, hint: string][] = [];
  if (!mongodbUri && (found.mode & 0o077) !== 0) {
    problems.push([`${dataDir} is open to other users`, `Close it: chmod 700 ${dataDir}`]);
  }
  if (bavail * bsize < MIN_FREE_BYTES) problems.push([`${dataDir}: only ${free}`, 'Free some disk space.']);
  if (problems.length === 0) return passed('data directory', `${dataDir}, ${free}`);
  const [details, hints] = [0, 1].map((at) => problems.map((problem) => problem[at as 0 | 1]));
  return failed('data directory', details!.join('; '), hints!.join(' '));
}

async function checkDatabase(context: Context, config: Config, options: { fix: boolean }): Promise<CheckResult[]> {
  if (!config.mongodbUri && !(await stat(config.dataDir).catch(() => null))) {
    return [passed('database', 'the embedded engine; it is created on first use')];
  }
  let app: App;
  try {
    app = await context.app('diagnosis');
    await app.db.ping();
  } catch (error) {
    const { message, exitCode } = presentFailure(error);
    const hint = config.mongodbUri
      ? 'Without MONGODB_URI bsvc uses the embedded engine.'
      : 'If the data directory is damaged, "bsvc restore" into a new one (--data-dir) restores a backup.';
    return [(exitCode === EXIT.unreachable ? unreachable : failed)('database', message, hint)];
  }
  const half = await rejectHalfStore(app.db).then(() => null, presentFailure);
  if (half) return [failed('database', half.message, 'Until then all other commands fail.')];
  const { summary, warnings } = app.db;
  return [
    { ...passed('database', `${summary} answers`), hint: warnings.length > 0 ? warnings.join(' ') : null },
    ...(await checkStore(app)),
    await checkRetained(app.db),
    await checkMasterKey(app),
    await checkMigrations(app),
    await checkIndexes(app, options),
    ...(options.fix ? [await recountEach(app)] : []),
    await checkChanges(app),
    await checkExposed(app),
    await checkAccessRules(app),
    await checkClock(app),
    ...(await checkCookies(app)),
    await checkBackups(app),
    ...(await diagnoseBucket(app, options)),
  ];
}

/** Opens one encrypted text of each kind there is, so that it is known before a user needs one. */
async function checkMasterKey(app: App): Promise<CheckResult> {
  const hint = 'Until then all other commands fail.';
  try {
    await requireEncryptionKeys(app);
  } catch (error) {
    return failed('master key', presentFailure(error).message, hint);
  }
  const found = await findEncryptedSamples(app);
  for (const { encrypted, context } of found) {
    try {
      app.secrets.decrypt(encrypted, context);
    } catch (error) {
      const message = `a stored secret cannot be decrypted: ${(error as Error).message}`;
      return failed('master key', message, 'Restore the right secret.key or BSVC_SECRET_KEY, or restore a backup.');
    }
  }
  if (found.length === 0) return passed('master key', 'nothing is encrypted yet');
  return passed('master key', `decrypts what is stored (checked with ${countOf(found.length, 'secret')})`);
}

async function findEncryptedSamples(app: App): Promise<EncryptedField[]> {
  const samples: EncryptedField[] = [];
  for (const place of ENCRYPTED_PLACES) samples.push(...(await findSample(app, place)));
  return samples;
}

async function findSample({ db }: App, place: EncryptedPlace): Promise<EncryptedField[]> {
  for (const name of await placeCollections(db, place)) {
    for await (const record of db
      .collection(name)
      .find(place.filter ?? {})
      .limit(SAMPLED_RECORDS)) {
      const [sample] = place.fields(record);
      if (sample) return [sample];
    }
  }
  return [];
}

async function checkMigrations(app: App): Promise<CheckResult> {
  const status = await findMigrationStatus(app.db);
  try {
    rejectNewerStore(status);
  } catch (error) {
    return failed('migrations', presentFailure(error).message, 'Until then all other commands fail.');
  }
  const { applied, pending } = status;
  if (pending.length === 0) return passed('migrations', `all ${applied.length} applied`);
  if (!app.db.isShared() || applied.length === 0) {
    return passed('migrations', `${pending.length} will run at the next start`);
  }
  return failed('migrations', `${pending.length} pending`, 'Make a backup, then run "bsvc migrate".');
}

async function checkIndexes(app: App, options: { fix: boolean }): Promise<CheckResult> {
  const { pending } = await findMigrationStatus(app.db);
  // They make indexes too.
  if (pending.length > 0) return passed('indexes', 'not checked until the pending migrations have run');
  const missing: string[] = [];
  let count = 0;
  for (const project of await listProjects(app)) {
    for (const collection of await listCollections(app, project._id)) {
      // `users` is stored from its first edit or signup on, and then with its indexes.
      if (collection.version === 0) continue;
      const absent = await listMissingIndexes(app, collection);
      count += documentIndexes(collection).length;
      if (absent.length > 0 && options.fix) await applyIndexes(app, collection);
      missing.push(...absent.map((name) => `${project.name}/${collection.name}: ${name}`));
    }
  }
  const shown = `${missing.slice(0, 5).join(', ')}${missing.length > 5 ? ', …' : ''}`;
  if (missing.length === 0) return passed('indexes', `all ${count} present`);
  if (options.fix) return passed('indexes', `${missing.length} rebuilt (${shown})`);
  return failed('indexes', `${missing.length} missing (${shown})`, 'Rebuild them: bsvc doctor --fix');
}

/** Sets the counters of stored bytes right, which can be wrong after data was restored or changed from outside. */
async function recountEach(app: App): Promise<CheckResult> {
  const { pending, unknown } = await findMigrationStatus(app.db);
  // Another version knows how it counts.
  if (pending.length + unknown.length > 0) return passed('storage', 'not recounted while migrations are pending');
  const wrong: string[] = [];
  const projects = await listProjects(app);
  for (const project of projects) {
    try {
      const { before, after } = await recountStorage(app, project);
      if (before !== after) wrong.push(`${project.name}: ${presentBytes(after)} instead of ${presentBytes(before)}`);
    } catch (error) {
      return failed('storage', `${project.name}: ${presentFailure(error).message}`, 'Run "bsvc doctor --fix" again.');
    }
  }
  const corrected = wrong.length === 0 ? '' : `, corrected ${wrong.join(', ')}`;
  return passed('storage', `recounted the used storage of ${countOf(projects.length, 'project')}${corrected}`);
}

/** True if the nearest directory above that is there lets this user in. */
async function canBeMade(path: string): Promise<boolean> {
  const above = dirname(path);
  const found = await stat(above).catch(() => null);
  if (found) return found.isDirectory() && isWritable(above);
  return above !== path && canBeMade(above);
}

async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** Says what the limits of requests mean for people who share one address, such as an office. */
function checkLimits(config: Pick<Config, 'rateLimit' | 'userRateLimit' | 'authRateLimit'>): CheckResult {
  const { rateLimit, userRateLimit, authRateLimit } = config;
  const parts = [
    `without a user ${say(rateLimit, 'requests')}`,
    `${say(authRateLimit, 'sign-ins')} (BSVC_AUTH_RATE_LIMIT), shared by everyone behind that address`,
    `each signed-in user ${say(userRateLimit, 'requests')} of their own`,
  ];
  return passed('limits', `one address: ${parts.join('; ')}`);
}

function say(rate: Rate | null, what: string): string {
  return rate ? `${rate.count} ${what} in ${formatDuration(rate.windowMs)}` : `any number of ${what}`;
}

/**
 * Looks whether operators sign in at the console over a network without TLS. A warning only: something in front may
 * end TLS without telling. No check where the console is off.
 */
function checkConsole({ console, host, publicUrl }: Config): CheckResult[] {
  if (!console) return [];
  if (publicUrl?.startsWith('https:')) return [passed('console', `${publicUrl}/console, over HTTPS`)];
  if (isLoopback(host)) return [passed('console', 'on this machine only')];
  return [
    {
      ...passed('console', `listens on ${host}, and no HTTPS address is set`),
      hint: 'Operators’ passwords cross the network unencrypted: set BSVC_PUBLIC_URL to the HTTPS address of the proxy, or BSVC_CONSOLE=off.',
    },
  ];
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

const MAX_NAMED = 5;

/**
 * Looks, where cookies go to other sites, for projects that admit every origin: their pages' cookies do not count. No
 * check where cookies stay at home.
 */
async function checkCookies(app: App): Promise<CheckResult[]> {
  if (!app.config.crossSiteCookies) return [];
  const open = (await listProjects(app)).filter(({ allowedDomains }) => allowedDomains.includes('*'));
  if (open.length === 0) return [passed('cross-site cookies', 'every project names the origins that may use them')];
  const names = open.slice(0, MAX_NAMED).map(({ name }) => name);
  const shown = `${names.join(', ')}${open.length > MAX_NAMED ? ', …' : ''}`;
  return [
    failed(
      'cross-site cookies',
      `they do not count for projects that admit every origin (*): ${shown}`,
      `Name the origins of its pages: bsvc project update ${names[0]!} --allowed-domain https://app.example.com`,
    ),
  ];
}

/**
 * Tests of the service's own bucket, under the names `bucket: …`; none when files are kept in the data directory. With
 * `fix`, pages of every origin are let in when none are.
 */
async function diagnoseBucket(app: App, options: { fix: boolean }): Promise<BucketCheckLine[]> {
  const store = await app.files.openPlatformBucket();
  if (!store) return [];
  let checks = await checkBucket(store, SOME_ORIGIN);
  if (options.fix && checks.some(({ name, ok }) => name === 'cors' && !ok)) {
    try {
      await store.applyCors(['*']);
      checks = await checkBucket(store, SOME_ORIGIN);
    } catch (error) {
      const cors = checks.find(({ name }) => name === 'cors')!;
      cors.detail = `${cors.detail}; setting the rules failed: ${(error as Error).message}`;
    }
  }
  return checks.map((check) => ({
    ...check,
    name: `bucket: ${check.name}`,
    hint: check.hint && check.name === 'cors' ? `${check.hint} "bsvc doctor --fix" does so.` : check.hint,
  }));
}

type BucketCheckLine = Omit<BucketCheck, 'name'> & { name: string };
