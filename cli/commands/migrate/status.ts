import { findMigrationStatus } from '../../../src/migrations/migrate.js';
import { defineCommand } from '../../shell/command.js';

export default defineCommand({
  examples: ['bsvc migrate status', 'bsvc migrate status --json'],
  async run(context) {
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
  },
});
