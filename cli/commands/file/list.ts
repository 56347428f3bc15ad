import {
  FILES_PAGE,
  listProjectFiles,
  MAX_FILES_PAGE,
  presentListedFile,
} from '../../../src/features/files/list-files.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, value } from '../../shell/command.js';
import { presentList } from '../../shell/present-list.js';
import { wholeOption } from '../../shell/read-whole.js';

export default defineCommand({
  details: 'The newest first.',
  examples: ['bsvc file list --project shop', 'bsvc file list --project shop --name invoice --json'],
  parameters: {
    project: projectOption,
    name: value('--name <text>', 'only names that hold this text, in either case'),
    limit: value('--limit <n>', `how many (default: ${FILES_PAGE})`, wholeOption(1, MAX_FILES_PAGE)),
    before: value('--before <path>', 'those before this one: the next page'),
  },
  async run(context, { project: named, limit = FILES_PAGE, ...query }) {
    const { app, project } = await chooseProject(context, named);
    const { files } = await listProjectFiles(app, project, { ...query, limit });
    const serviceUrl = app.config.publicUrl ?? `http://${app.config.host}:${app.config.port}`;
    const items = await Promise.all(files.map((file) => presentListedFile(app, project, file, serviceUrl)));
    return presentList(items, {
      name: ({ path }) => path,
      empty: 'No files.',
      head: ['path', 'type', 'bytes', 'at'],
      row: (file) => [file.path, file.contentType, file.size ?? '', file.createdAt],
    });
  },
});
