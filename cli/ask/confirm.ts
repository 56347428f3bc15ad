import { invalid } from '../../src/errors.js';
import { flag } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../shell/exit.js';

/** The option of every destructive command. */
export const yesOption = flag('--yes', 'do not ask for confirmation');

/** Said after a plan that drops fields. */
export const DROPPED_FIELDS = 'Values of dropped fields stay stored; declaring a field again shows them again.';

/** Refuses at once, before anything is connected, where the confirmation can neither be given nor asked for. */
export function requireConfirmable(context: Context, given: boolean): void {
  if (!given && !context.ask.possible) throw new UsageError('This cannot be undone: confirm it with --yes.');
}

/**
 * Makes the person type `name` before something that cannot be undone. `--yes` answers; without either it is exit 2.
 */
export async function confirmByName(context: Context, given: boolean, what: string, name: string): Promise<void> {
  if (!given) await typeName(context, what, 'This cannot be undone: confirm it with --yes', name);
}

/**
 * Makes the person agree to what a declaration takes away: `drops` always, `loosens` unless `--prune` said so. Off a
 * terminal exit 2 without `--yes`.
 */
export async function confirmLosses(
  context: Context,
  given: { yes: boolean; prune: boolean },
  { drops, loosens }: { drops: readonly string[]; loosens: readonly string[] },
  project: string,
): Promise<void> {
  const dropped = drops.length > 0 ? `Drops ${drops.join(', ')} of project ${project}.` : '';
  const loosened = loosens.length > 0 && !given.prune ? `Loosens in project ${project}: ${loosens.join('; ')}.` : '';
  if (given.yes || dropped + loosened === '') return;
  const what = [dropped, loosened].filter(Boolean).join(' ');
  const answer = dropped ? 'This cannot be undone: confirm it with --yes' : 'Nothing was changed: agree with --yes';
  await typeName(context, what, answer, project);
}

async function typeName(context: Context, what: string, missing: string, name: string): Promise<void> {
  const typed = await context.ask.text(`${what} Type "${name}" to go on:`, `${what} ${missing}`);
  if (typed.trim() !== name) {
    throw invalid('NOT_CONFIRMED', `"${typed.trim()}" is not "${name}": nothing was done.`);
  }
}
