import { setMailSettings } from '../../../src/features/mail/project-mail.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentByok } from './present.js';

export default defineProjectCommand({
  details: 'The secret of its events is forgotten too. Mail goes out through the service’s own provider again.',
  examples: ['bsvc byok clear --project shop', 'bsvc byok clear --project shop --yes'],
  audited: true,
  destroys: ({ project }) => ({ what: `Forgets the mail provider’s key of ${project.name}.`, name: project.name }),
  async run(context, { app, project }) {
    return presentByok(await setMailSettings(app, project, { providerApiKey: null, webhookSecret: null }));
  },
});
