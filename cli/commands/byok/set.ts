import { checkMailKey, setMailSettings } from '../../../src/features/mail/project-mail.js';
import { verifyMailKey } from '../../../src/features/mail/verify-mail-key.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { flag, secret } from '../../shell/command.js';
import { readSecret } from '../../shell/read-secret.js';
import { presentByok } from './present.js';

export default defineProjectCommand({
  details: 'The key is checked with a live call and stored sealed; nothing shows it again.',
  examples: [
    'bsvc byok set --project shop --mail-key-stdin < key.txt',
    'bsvc byok set --project shop --mail-key-env RESEND_KEY --no-verify',
  ],
  audited: true,
  parameters: {
    mailKey: secret('mail-key', 'key of the project’s own mail provider account (re_…)'),
    noVerify: flag('--no-verify', 'store the key without a live call'),
  },
  async run(context, { app, project, mailKey, noVerify }) {
    const providerApiKey = (await readSecret(context, mailKey, 'Mail provider key')).trim();
    checkMailKey(providerApiKey);
    if (!noVerify) await verifyMailKey(app, providerApiKey);
    return presentByok(await setMailSettings(app, project, { providerApiKey }));
  },
});
