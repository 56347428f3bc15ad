import { fullAddress, openBackupPlace } from '../../../src/features/backups/backup-place.js';
import { defineCommand, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { presentBytes } from '../../view/present-amount.js';
import { presentList } from '../../view/present-list.js';

export default defineCommand({
  details: 'The backups in BSVC_BACKUP_TO, or in another place. "bsvc restore" takes their names.',
  examples: ['bsvc backup list --from /var/backups/bsvc'],
  parameters: { from: option('--from <place>', 'directory or s3://bucket/prefix (default: BSVC_BACKUP_TO)') },
  async run(context, { from }) {
    const { config } = context.settings();
    const address = from === undefined ? config.backupTo : fullAddress(from, context.io.cwd);
    if (address === null) throw new UsageError('No place given: add --from <place> or set BSVC_BACKUP_TO.');
    const place = await openBackupPlace({ config }, address);
    const backups = await place.list().finally(() => place.close());
    const shown = backups.map(({ name, at, bytes }) => ({ name, at: at.toISOString(), bytes }));
    return presentList(shown, {
      name: ({ name }) => name,
      empty: `No backups in ${place.address}.`,
      head: ['name', 'made', 'size'],
      row: ({ name, at, bytes }) => [name, at.slice(0, 16), presentBytes(bytes)],
    });
  },
});
