import { presentMailSettings, setMailSettings } from '../../../src/features/mail/project-mail.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentByok } from './present.js';

export default defineCommand({
  details: 'The secret of its events is forgotten too. Mail goes out through the service’s own provider again.',
  examples: ['bsvc byok clear --project shop'],
  audited: true,
  parameters: { project: projectOption },
  async run(context, { project: named }) {
    const { app, project } = await chooseProject(context, named);
    return presentByok(
      presentMailSettings(await setMailSettings(app, project, { providerApiKey: null, webhookSecret: null })),
    );
  },
});
