import { deleteFile } from '../../../src/features/files/delete-file.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { confirmByName, requireConfirmable, yesOption } from '../../ask/confirm.js';
import { argument, defineCommand } from '../../shell/command.js';

export default defineCommand({
  details: 'For good, with its bytes.',
  examples: ['bsvc file delete 66f0c0ffee0ddba11c0de001/7d9e_photo.png --project shop --yes'],
  audited: true,
  parameters: { path: argument('path', 'path of the file'), project: projectOption, yes: yesOption },
  async run(context, { path, project: named, yes }) {
    requireConfirmable(context, yes);
    const { app, project } = await chooseProject(context, named);
    await confirmByName(context, yes, `Deletes the file ${path}.`, path);
    await deleteFile(app, project, path, null);
    return { json: { path }, quiet: path, text: () => `File ${path} is deleted.` };
  },
});
