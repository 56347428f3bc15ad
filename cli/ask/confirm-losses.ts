import type { Context } from '../shell/context.js';

/** Said after a plan that drops fields. */
export const DROPPED_FIELDS = 'Values of dropped fields stay stored; declaring a field again shows them again.';

/**
 * Makes the person agree to what a declaration takes away: `drops` always, `loosens` unless `--prune` said so. Off a
 * terminal exit 2 without `--yes`.
 */
export async function confirmLosses(
  context: Context,
  { prune }: { prune: boolean },
  { drops, loosens }: { drops: readonly string[]; loosens: readonly string[] },
  project: string,
): Promise<void> {
  const dropped = drops.length > 0 ? `Drops ${drops.join(', ')} of project ${project}.` : '';
  const loosened = loosens.length > 0 && !prune ? `Loosens in project ${project}: ${loosens.join('; ')}.` : '';
  if (dropped + loosened === '') return;
  const what = [dropped, loosened].filter(Boolean).join(' ');
  await context.confirm({ what, name: project, ...(!dropped && { reversible: true }) });
}
