import { wholeWithin } from '../../src/config/setting-readers.js';
import { deleteFile } from '../../src/features/files/delete-file.js';
import {
  FILES_PAGE,
  MAX_FILES_PAGE,
  listProjectFiles,
  presentListedFile,
} from '../../src/features/files/list-files.js';
import { defineProjectCommand } from '../ask/choose.js';
import { option } from '../shell/command.js';
import { findServiceAddress } from '../shell/service-address.js';
import { UsageError } from '../view/exit.js';
import { presentBytes, presentList } from '../view/present.js';

export default defineProjectCommand({
  details: 'Lists files, the newest first. --delete removes one with its bytes.',
  examples: [
    'bsvc file --project shop',
    'bsvc file --project shop --name invoice --json',
    'bsvc file --project shop --delete 66f0c0ffee0ddba11c0de001/7d9e_photo.png --yes',
  ],
  audited: ({ path }) => path !== undefined,
  destroys: 'at times',
  parameters: {
    name: option('--name <text>', 'only names that contain this text, in any case'),
    limit: option('--limit <n>', `how many (default: ${FILES_PAGE})`, wholeWithin(1, MAX_FILES_PAGE)),
    before: option('--before <path>', 'start before this one, for the next page'),
    path: option('--delete <path>', 'delete the file with this path'),
  },
  async run(context, { app, project, limit, path, ...query }) {
    if (path !== undefined) {
      if ((limit ?? query.name ?? query.before) !== undefined) throw new UsageError('--delete takes one path alone.');
      await context.confirm({ what: `Deletes the file ${path}.`, name: path });
      await deleteFile(app, project, path);
      return { json: { path }, quiet: path, text: () => `File ${path} is deleted.` };
    }
    const { files } = await listProjectFiles(app, project, { ...query, limit: limit ?? FILES_PAGE });
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
