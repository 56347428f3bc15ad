import { checkMailKey, presentMailSettings, setMailSettings } from '../../../src/features/mail/project-mail.js';
import { verifyMailKey } from '../../../src/features/mail/verify-mail-key.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, secret } from '../../shell/command.js';
import { readSecret } from '../../shell/read-secret.js';
import { presentByok } from './present.js';

export default defineCommand({
  details: 'The key is checked with a live call and stored sealed; nothing shows it again.',
  examples: [
    'bsvc byok set --project shop --mail-key-stdin < key.txt',
    'bsvc byok set --project shop --mail-key-env RESEND_KEY --no-verify',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    mailKey: secret('mail-key', 'key of the project’s own mail provider account (re_…)'),
    noVerify: flag('--no-verify', 'store the key without a live call'),
  },
  async run(context, { project: named, mailKey, noVerify }) {
    const { app, project } = await chooseProject(context, named);
    const providerApiKey = (await readSecret(context, mailKey, 'Mail provider key')).trim();
    checkMailKey(providerApiKey);
    if (!noVerify) await verifyMailKey(app, providerApiKey);
    return presentByok(presentMailSettings(await setMailSettings(app, project, { providerApiKey })));
  },
});
