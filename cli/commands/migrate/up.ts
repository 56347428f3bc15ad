import { findMigrationStatus } from '../../../src/migrations/migrate.js';
import { migrateAlone, requireOwnStore } from '../../../src/migrations/require-migrated.js';
import { defineCommand, flag } from '../../shell/command.js';

export default defineCommand({
  details:
    'Migrations go one way and are harmless to repeat. With the embedded engine "bsvc serve" and "bsvc worker" run them too.',
  examples: ['bsvc migrate', 'bsvc migrate up --dry-run'],
  audited: ({ dryRun }) => !dryRun,
  parameters: { dryRun: flag('--dry-run', 'only say what would be run') },
  async run(context, { dryRun }) {
    const app = await context.app(dryRun ? 'diagnosis' : 'migration');
    const before = await findMigrationStatus(app.db);
    if (dryRun) {
      return {
        json: { applied: [], pending: before.pending },
        quiet: before.pending,
        text: () =>
          before.pending.length === 0 ? 'Nothing is pending.' : `Would run:\n  ${before.pending.join('\n  ')}`,
      };
    }
    await requireOwnStore(app);
    const applied = await migrateAlone(app.db);
    return {
      json: { applied, pending: [] },
      quiet: applied,
      text: () => (applied.length === 0 ? 'Nothing was pending.' : `Applied:\n  ${applied.join('\n  ')}`),
    };
  },
});
