import { setTimeout as wait } from 'node:timers/promises';
import type { GatheringSink, LogSink } from '../../src/platform/observe/logger.js';
import type { App } from '../../src/app.js';
import type { Config } from '../../src/config/config.js';
import { AppError, missing, unavailable } from '../../src/errors.js';
import { confirmLoss, type Context, type Purpose } from './context.js';
import type { AuditEntry, NewAuditEntry } from '../../src/features/audit/audit-log.js';
import { orTimeout } from '../../src/platform/time/with-timeout.js';
import { type Io, openOutput } from '../view/output.js';
import { openPrompt } from './prompt.js';
import { chooseLogFormat, listUnknownSettings, readConfig, readLayers, findWord } from './settings.js';

/** Options that every command takes, before or after its name. */
export interface GlobalOptions {
  json?: boolean;
  quiet?: boolean;
  color: boolean;
  input: boolean;
  dataDir?: string;
  envFile?: string;
}

/** A database that does not answer within this time counts as unreachable (cli.md: exit 3 within 10 s). */
const OPEN_DEADLINE_MS = 9000;
/** Codes of failures after which a MongoDB would only be waited for once more. */
const DATABASE_AWAY: ReadonlySet<string | null> = new Set(['DATABASE_UNAVAILABLE', 'UNREACHABLE']);

export interface RunContext extends Context {
  /**
   * Records how the audited act ended, if it was begun and the database is there; `code` is the error's, null for
   * success.
   */
  finish(code: string | null): Promise<void>;
  /** Ends what was opened; may be called whether or not anything was. */
  close(): Promise<void>;
}

/**
 * The context of one run. An `act` is recorded when the command connects: one that is refused before has changed
 * nothing.
 */
export function openContext(
  io: Io,
  options: GlobalOptions,
  { settings: flags, implied }: { settings: Record<string, string>; implied: Record<string, string> },
  stop: AbortSignal,
  act: () => NewAuditEntry | null,
  { reads, yes }: { reads: boolean; yes: boolean },
): RunContext {
  const dataDir: Record<string, string> = options.dataDir === undefined ? {} : { BSVC_DATA_DIR: options.dataDir };
  const layers = readLayers(io, { ...dataDir, ...flags }, options.envFile, implied);
  let settings: ReturnType<typeof readConfig> | null = null;
  let opening: Promise<App> | null = null;
  let lines: GatheringSink | null = null;
  let recorded: { app: App; act: AuditEntry } | null = null;
  const connect = async (purpose: Purpose): Promise<App> => {
    if (reads && purpose === 'command') await requireStore(context.settings().config);
    const { gatherLines } = await import('../../src/platform/observe/logger.js');
    lines = gatherLines({ write: (text) => void io.stderr.write(text) });
    const app = await openInTurn(context, purpose, lines);
    const begun = act();
    // What may only be read notes nothing either.
    if (begun && app.db.refusal() === null) {
      const { startAuditEntry: startAct } = await import('../../src/features/audit/audit-log.js');
      recorded = { app, act: await startAct(app, begun) };
    }
    return app;
  };
  const readSettings = (): ReturnType<typeof readConfig> => {
    for (const problem of listUnknownSettings(layers)) context.out.warn(`Warning: ${problem}`);
    return readConfig(io, layers);
  };
  const ask = openPrompt(io, options.input);
  const context: Context = {
    io,
    stop,
    layers,
    envFile: options.envFile,
    out: openOutput(io, { json: options.json === true, quiet: options.quiet === true, colour: options.color }),
    ask,
    confirm: (loss) => confirmLoss(ask, yes, loss),
    settings: () => (settings ??= readSettings()),
    app: (purpose = 'command') => (opening ??= connect(purpose)),
  };
  return {
    ...context,
    async finish(code) {
      if (!recorded || (recorded.app.db.kind === 'mongodb' && DATABASE_AWAY.has(code))) return;
      const { finishAuditEntry: finishAct } = await import('../../src/features/audit/audit-log.js');
      // By now the words that a person was asked for are known too.
      await finishAct(recorded.app, recorded.act, { code, input: act()?.input ?? {} });
    },
    async close() {
      const app = await opening?.catch(() => null);
      await app?.close();
      lines?.flush();
    },
  };
}

/** A command that only reads makes no store: a mistyped directory is reported, not filled. */
async function requireStore({ mongodbUri, dataDir }: Config): Promise<void> {
  if (mongodbUri !== null) return;
  const { hasStore } = await import('../../src/platform/database/database.js');
  if (await hasStore(dataDir)) return;
  throw missing(
    'NO_STORE',
    `There is no database in ${dataDir}. Check --data-dir and BSVC_DATA_DIR, or create one with "bsvc serve" or "bsvc project create <name>"`,
  );
}

/** Commands log little unless a log level is set. */
export const DEBUG_LEVELS: readonly string[] = ['trace', 'debug'];

/** Processes that start at once would wait for each other: each closes the store for a random time, ever longer. */
const TRIES = 8;
const GIVE_WAY_MS = 300;

async function openInTurn(context: Context, purpose: Purpose, lines: LogSink): Promise<App> {
  for (let tried = 1; ; tried++) {
    try {
      return await openWithin(context, purpose, lines);
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'STORE_SHARED') || tried === TRIES) throw error;
      await wait(Math.random() * GIVE_WAY_MS * tried);
    }
  }
}

async function openWithin(context: Context, purpose: Purpose, lines: LogSink): Promise<App> {
  const { config } = context.settings();
  const [{ openApp }, { openLogger }, { openTelemetry }] = await Promise.all([
    import('../../src/app.js'),
    import('../../src/platform/observe/logger.js'),
    import('../../src/platform/observe/telemetry.js'),
  ]);
  const quiet = purpose === 'diagnosis' ? 'silent' : 'warn';
  const level = purpose.endsWith('service') || DEBUG_LEVELS.includes(config.logLevel) ? config.logLevel : quiet;
  const format = chooseLogFormat(context.io, config);
  const log = openLogger({ level, format }, lines);
  // Commands are over too soon to be worth the loading.
  const telemetry = purpose.endsWith('service') ? await openTelemetry() : null;
  // A command has no other work that this read could delay.
  const opened = openApp(
    purpose.endsWith('service') ? config : { ...config, readerThreads: 0 },
    log,
    undefined,
    telemetry,
  );
  try {
    const app = await orTimeout(opened, OPEN_DEADLINE_MS, unreachable);
    app.ownCode.seeEnvironment((name) => findWord(context.layers, name));
    // It has answered; migrations take as long as they take.
    const prepared = await prepare(app, purpose);
    return purpose.endsWith('service') ? prepared : { ...prepared, actor: { type: 'operator' } };
  } catch (error) {
    // If it still connects, close the connection.
    void opened.then((app) => app.close()).catch(() => undefined);
    throw error;
  }
}

async function prepare(app: App, purpose: Purpose): Promise<App> {
  const [{ migrateAlone, requireMigrated, requireOwnStore }, { continueClock }, { recordEncryptionKeys }] =
    await Promise.all([
      import('../../src/migrations/require-migrated.js'),
      import('../../src/platform/database/clock-drift.js'),
      import('../../src/platform/secrets/encryption-keys.js'),
    ]);
  try {
    if (purpose !== 'migration' && purpose !== 'diagnosis') {
      await requireOwnStore(app);
      await (purpose === 'migrating service' ? migrateAlone(app.db) : requireMigrated(app.db));
      await continueClock(app);
      if (app.db.refusal() === null) await recordEncryptionKeys(app, app.clock.now());
    }
    if (purpose.endsWith('service')) for (const warning of app.db.warnings) app.log.warn(warning);
    return app;
  } catch (error) {
    await app.close();
    throw error;
  }
}

function unreachable(): Error {
  return unavailable(
    'UNREACHABLE',
    `The database did not answer within ${OPEN_DEADLINE_MS / 1000} seconds. Check MONGODB_URI and that the server is running; "bsvc doctor" looks closer.`,
  );
}
