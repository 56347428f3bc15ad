import type { App } from '../../src/app.js';
import type { Config, ConfigLayer, SettingSource } from '../../src/config/config.js';
import type { Loss } from './confirm.js';
import type { Io } from '../view/io.js';
import type { Output } from '../view/output.js';
import type { Prompt } from './prompt.js';

/** The environment of a command's handler. */
export interface Context {
  io: Io;
  out: Output;
  ask: Prompt;
  /** Makes the person agree to a loss; `--yes` did already. 400 NOT_CONFIRMED, exit 2 where nobody can answer. */
  confirm(loss: Loss): Promise<void>;
  /** Aborted when the process is told to stop or nobody reads stdout any more; long work checks it between steps. */
  stop: AbortSignal;
  layers: readonly ConfigLayer[];
  /** The file that `--env-file` named. */
  envFile: string | undefined;
  /** Read at first use, so that help and completion work beside a broken setting. */
  settings(): { config: Config; sources: SettingSource[] };
  /** Connected at first use, closed by run.ts. */
  app(purpose?: Purpose): Promise<App>;
}

/**
 * Why a command connects. A service logs everything, the others only warnings; a `command` and a `service` refuse to
 * work on data that waits for migrations, a `migrating service` runs them, a `migration` looks at them itself, and so
 * does a `diagnosis`, which reports what it finds and logs nothing.
 */
export type Purpose = 'command' | 'service' | 'migrating service' | 'migration' | 'diagnosis';
