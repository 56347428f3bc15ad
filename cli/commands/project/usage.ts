import type { StorageUsage } from '../../../src/features/files/measure-storage.js';
import { measureUsage, type DatabaseUsage } from '../../../src/features/management/measure-usage.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { projectArgument } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { countOf, presentBytes } from '../../view/present-amount.js';

export default defineCommand({
  examples: ['bsvc project usage shop', 'bsvc project usage shop --json'],
  parameters: { project: projectArgument },
  async run(context, input) {
    const app = await context.app();
    const usage = await measureUsage(app, await requireProject(app, input.project));
    return {
      json: usage,
      quiet: usage.documents,
      text: async (view) =>
        [
          await view.table(
            ['collection', 'documents', 'in trash', 'size', 'log of changes'],
            usage.collections.map(({ name, documents, trashed, bytes, log }) => [
              name,
              documents,
              trashed,
              presentBytes(bytes),
              log ? presentBytes(log.bytes) : '',
            ]),
          ),
          [
            presentDatabase(usage.database),
            presentStorage(usage.storage),
            `${usage.mail.used} of ${usage.mail.limit ?? 'unlimited'} mails used this month`,
            `${usage.webhooks} of ${usage.limits.webhooks ?? 'unlimited'} webhooks used`,
          ].join('\n'),
          await view.table(
            ['limit', `granted (plan ${usage.plan})`],
            Object.entries(usage.limits).map(([name, limit]) => [name, presentLimit(name, limit)]),
          ),
        ].join('\n\n'),
    };
  },
});

function presentDatabase({ used, kept, limit }: DatabaseUsage): string {
  const of = presentLimit('database', limit);
  return `${presentBytes(used)} of ${of} used in the database, ${presentBytes(kept)} of it sessions, codes, mails and the like`;
}

function presentStorage({ files, bytes, limit, provider }: StorageUsage): string {
  const place = provider === 'external' ? ' (new files go to the project’s own bucket)' : '';
  return `${countOf(files, 'file')}, ${presentBytes(bytes)} of ${presentLimit('storage', limit)} used${place}`;
}

function presentLimit(name: string, limit: number | null): string {
  if (limit === null) return 'unlimited';
  return name === 'storage' || name === 'database' ? presentBytes(limit) : String(limit);
}
