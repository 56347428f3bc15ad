import { invalid } from '../../src/errors.js';
import { UsageError } from '../view/exit.js';
import type { Prompt } from './prompt.js';

/** Something that goes for good, and the name that a person types to agree. */
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

/** Makes the person type the name of what goes, unless `--yes` was given. Exit 2 where nobody can answer. */
export async function confirmLoss(ask: Prompt, yes: boolean, { what, name, reversible }: Loss): Promise<void> {
  if (yes) return;
  const missing = reversible ? 'Nothing was changed: agree with --yes' : 'This cannot be undone: confirm it with --yes';
  const typed = await ask.text(`${what} Type "${name}" to go on:`, `${what} ${missing}`);
  if (typed.trim() !== name) {
    throw invalid('NOT_CONFIRMED', `"${typed.trim()}" is not "${name}": nothing was done.`);
  }
}
