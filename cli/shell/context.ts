import type { App } from '../../src/app.js';
import type { Config, ConfigLayer, SettingSource } from '../../src/config/config.js';
import type { Io, Output } from '../view/output.js';
import type { Prompt } from './prompt.js';
import { invalid } from '../../src/errors.js';
import { UsageError } from '../view/exit.js';

/** The environment of a command's handler. */
export interface Context {
  io: Io;
  out: Output;
  ask: Prompt;
  /** Asks to confirm a loss unless `--yes` is given. 400 NOT_CONFIRMED; exit code 2 without a terminal. */
  confirm(loss: Loss): Promise<void>;
  /** Aborted when the process should stop or stdout is closed; long work checks it between steps. */
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

/** Something that is deleted permanently, and the name to type for confirmation. */
export interface Loss {
  /** A sentence, or several. */
  what: string;
  name: string;
  /** It can be taken back, but is not to happen unnoticed. */
  reversible?: boolean;
}

/** Refuses at once, before anything is connected, where the confirmation can neither be given nor asked for. */
export function requireConfirmable(ask: Prompt, yes: boolean): void {
  if (!yes && !ask.possible) throw new UsageError('This cannot be undone: confirm it with --yes.');
}

/** Asks to type the name of what is deleted, unless `--yes` is given. Exit code 2 without a terminal. */
export async function confirmLoss(ask: Prompt, yes: boolean, { what, name, reversible }: Loss): Promise<void> {
  if (yes) return;
  const missing = reversible ? 'Nothing was changed: agree with --yes' : 'This cannot be undone: confirm it with --yes';
  const typed = await ask.text(`${what} Type "${name}" to go on:`, `${what} ${missing}`);
  if (typed.trim() !== name) {
    throw invalid('NOT_CONFIRMED', `"${typed.trim()}" is not "${name}": nothing was done.`);
  }
}
