import { deleteFile } from '../../../src/features/files/delete-file.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { argument } from '../../shell/command.js';

export default defineProjectCommand({
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
