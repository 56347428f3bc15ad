import { findMigrationStatus } from '../../src/migrations/migrate.js';
import { migrateAlone, requireOwnStore } from '../../src/migrations/require-migrated.js';
import { defineCommand, flag, optionalArgument } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';

export default defineCommand({
  details:
    'Migrations cannot be reverted and are safe to repeat. With the embedded database, "bsvc serve" and "bsvc worker" run them too.',
  examples: ['bsvc migrate', 'bsvc migrate --dry-run', 'bsvc migrate status'],
  audited: ({ action, dryRun }) => !dryRun && action !== 'status',
  parameters: {
    action: optionalArgument('action', 'up (the default), or status: list applied and pending migrations'),
    dryRun: flag('--dry-run', 'only list what would run'),
  },
  async run(context, { action = 'up', dryRun }) {
    if (action === 'status') return showStatus(context);
    if (action !== 'up') throw new UsageError(`"${action}" is neither up nor status.`);
    const app = await context.app(dryRun ? 'diagnosis' : 'migration');
    if (dryRun) {
      const { pending } = await findMigrationStatus(app.db);
      const text = pending.length === 0 ? 'Nothing is pending.' : `Would run:\n  ${pending.join('\n  ')}`;
      return { json: { applied: [], pending }, quiet: pending, text: () => text };
    }
    await requireOwnStore(app);
    const applied = await migrateAlone(app.db);
    const text = applied.length === 0 ? 'Nothing was pending.' : `Applied:\n  ${applied.join('\n  ')}`;
    return { json: { applied, pending: [] }, quiet: applied, text: () => text };
  },
});

async function showStatus(context: Context): Promise<Result> {
  const app = await context.app('diagnosis');
  const status = await findMigrationStatus(app.db);
  return {
    json: status,
    quiet: status.pending,
    text: (view) =>
      view.table(
        ['migration', 'state'],
        [
          ...status.applied.map((id) => [id, 'applied']),
          ...status.pending.map((id) => [id, 'pending']),
          ...status.unknown.map((id) => [id, 'applied by a newer bsvc']),
        ],
      ),
  };
}
