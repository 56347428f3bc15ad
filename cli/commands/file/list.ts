import {
  FILES_PAGE,
  listProjectFiles,
  MAX_FILES_PAGE,
  presentListedFile,
} from '../../../src/features/files/list-files.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { option } from '../../shell/command.js';
import { presentBytes } from '../../view/present-amount.js';
import { presentList } from '../../view/present-list.js';
import { wholeWithin } from '../../../src/config/setting-readers.js';
import { findServiceAddress } from '../../shell/service-address.js';

export default defineProjectCommand({
  details: 'The newest first.',
  examples: ['bsvc file list --project shop', 'bsvc file list --project shop --name invoice --json'],
  parameters: {
    name: option('--name <text>', 'only names that hold this text, in either case'),
    limit: option('--limit <n>', `how many (default: ${FILES_PAGE})`, wholeWithin(1, MAX_FILES_PAGE)),
    before: option('--before <path>', 'those before this one: the next page'),
  },
  async run(context, { app, project, limit = FILES_PAGE, ...query }) {
    const { files } = await listProjectFiles(app, project, { ...query, limit });
    const serviceUrl = await findServiceAddress(app);
    const items = await Promise.all(files.map((file) => presentListedFile(app, project, file, serviceUrl)));
    return presentList(items, {
      name: ({ path }) => path,
      empty: 'No files.',
      head: ['path', 'type', 'size', 'created'],
      row: (file) => [file.path, file.contentType, file.size === null ? '' : presentBytes(file.size), file.createdAt],
    });
  },
});
