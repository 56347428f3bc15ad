import { presentMailSettings } from '../../../src/features/mail/project-mail.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentByok } from './present.js';

export default defineCommand({
  examples: ['bsvc byok show --project shop'],
  parameters: { project: projectOption },
  async run(context, { project: named }) {
    const { project } = await chooseProject(context, named);
    return presentByok(presentMailSettings(project));
  },
});
