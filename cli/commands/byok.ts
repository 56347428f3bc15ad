import { checkMailKey, presentMailSettings, setMailSettings } from '../../src/features/mail/project-mail.js';
import { verifyMailKey } from '../../src/features/mail/verify-mail-key.js';
import type { Project } from '../../src/features/projects/project.js';
import { defineProjectCommand } from '../ask/choose-project.js';
import { type SecretSource, flag, secret } from '../shell/command.js';
import { readSecret } from '../shell/read-secret.js';
import type { Result } from '../view/output.js';

/** A project's own mail account, secrets masked. */
function presentByok(project: Project): Result {
  const settings = presentMailSettings(project);
  return {
    json: settings,
    quiet: settings.providerApiKey ?? '',
    text: (view) =>
      view.table(
        ['setting', 'value'],
        [
          ['mail provider key', settings.providerApiKey ?? 'none: the service’s own provider sends'],
          ['default sender', settings.providerFromEmail ?? 'the server’s'],
          ['webhook secret', settings.webhookSecret ?? 'none'],
        ],
      ),
  };
}

const show = defineProjectCommand({
  examples: ['bsvc byok show --project shop'],
  run(context, { project }) {
    return presentByok(project);
  },
});

const set = defineProjectCommand({
  details: [
    'The key is checked with a live call and stored encrypted; it is not shown again.',
    'The webhook secret signs the events of this account, which then go to /api/mail/webhook?project=<id>.',
  ].join('\n'),
  examples: [
    'bsvc byok set --project shop --mail-key-stdin < key.txt',
    'bsvc byok set --project shop --mail-key-env RESEND_KEY --no-verify',
    'bsvc byok set --project shop --webhook-secret-env WEBHOOK_SECRET',
  ],
  audited: true,
  parameters: {
    mailKey: secret('mail-key', 'key of the project’s own mail provider account (re_…)'),
    webhookSecret: secret('webhook-secret', 'secret that signs the provider’s events (whsec_…)'),
    noVerify: flag('--no-verify', 'store the key without a live call'),
  },
  async run(context, { app, project, mailKey, webhookSecret: events, noVerify }) {
    const webhookSecret = isGiven(events) ? (await readSecret(context, events, 'Webhook secret')).trim() : undefined;
    if (webhookSecret !== undefined && !isGiven(mailKey)) {
      return presentByok(await setMailSettings(app, project, { webhookSecret }));
    }
    const providerApiKey = (await readSecret(context, mailKey, 'Mail provider key')).trim();
    checkMailKey(providerApiKey);
    if (!noVerify) await verifyMailKey(app, providerApiKey);
    return presentByok(
      await setMailSettings(app, project, { providerApiKey, ...(webhookSecret && { webhookSecret }) }),
    );
  },
});

const isGiven = ({ stdin, env }: SecretSource): boolean => stdin || env !== undefined;

const clear = defineProjectCommand({
  details: 'The secret of its events is forgotten too. Mail goes out through the service’s own provider again.',
  examples: ['bsvc byok clear --project shop', 'bsvc byok clear --project shop --yes'],
  audited: true,
  destroys: ({ project }) => ({ what: `Forgets the mail provider’s key of ${project.name}.`, name: project.name }),
  async run(context, { app, project }) {
    return presentByok(await setMailSettings(app, project, { providerApiKey: null, webhookSecret: null }));
  },
});

export default { set, show, clear };
