import { setMailSettings } from '../../../src/features/mail/project-mail.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { secret } from '../../shell/command.js';
import { readSecret } from '../../shell/read-secret.js';
import { presentByok } from './present.js';

export default defineProjectCommand({
  details: 'Events of the project’s own account then go to /api/mail/webhook?project=<id>.',
  examples: ['bsvc byok webhook-secret --project shop --secret-stdin < secret.txt'],
  audited: true,
  parameters: { secret: secret('secret', 'secret that signs the provider’s events (whsec_…)') },
  async run(context, { app, project, secret: source }) {
    const webhookSecret = (await readSecret(context, source, 'Webhook secret')).trim();
    return presentByok(await setMailSettings(app, project, { webhookSecret }));
  },
});
