import { wholeWithin } from '../../src/config/setting-readers.js';
import { deleteFile } from '../../src/features/files/delete-file.js';
import {
  FILES_PAGE,
  MAX_FILES_PAGE,
  listProjectFiles,
  presentListedFile,
} from '../../src/features/files/list-files.js';
import { defineProjectCommand } from '../ask/choose-project.js';
import { argument, option } from '../shell/command.js';
import { findServiceAddress } from '../shell/service-address.js';
import { presentBytes } from '../view/present-amount.js';
import { presentList } from '../view/present-list.js';

const list = defineProjectCommand({
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

const remove = defineProjectCommand({
  details: 'Its bytes go too.',
  examples: ['bsvc file delete 66f0c0ffee0ddba11c0de001/7d9e_photo.png --project shop --yes'],
  audited: true,
  destroys: ({ path }) => ({ what: `Deletes the file ${path}.`, name: path }),
  parameters: { path: argument('path', 'path of the file') },
  async run(_context, { app, project, path }) {
    await deleteFile(app, project, path);
    return { json: { path }, quiet: path, text: () => `File ${path} is deleted.` };
  },
});

export default { list, remove };
