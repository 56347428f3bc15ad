import { invalid } from '../../src/errors.js';
import { flag } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../shell/exit.js';

/** The option of every destructive command. */
export const yesOption = flag('--yes', 'do not ask for confirmation');

/** Refuses at once, before anything is connected, where the confirmation can neither be given nor asked for. */
export function requireConfirmable(context: Context, given: boolean): void {
  if (!given && !context.ask.possible) throw new UsageError('This cannot be undone: confirm it with --yes.');
}

/**
 * Makes the person type `name` before something that cannot be undone. `--yes` answers; without either it is exit 2.
 */
export async function confirmByName(context: Context, given: boolean, what: string, name: string): Promise<void> {
  if (given) return;
  const typed = await context.ask.text(
    `${what} Type "${name}" to go on:`,
    `${what} This cannot be undone: confirm it with --yes`,
  );
  if (typed.trim() !== name) {
    throw invalid('NOT_CONFIRMED', `"${typed.trim()}" is not "${name}": nothing was done.`);
  }
}
