import { parseDuration } from '../../../src/config/setting-readers.js';
import { rotateTokenSecret } from '../../../src/features/projects/token-secret.js';
import { rotateSecrets } from '../../../src/features/store-copies/rotate-secrets.js';
import { chooseProject, projectOption } from '../../ask/choose.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { countOf } from '../../view/present.js';

export default defineCommand({
  details: [
    'Creates a new key in the data directory and encrypts stored secrets with it while servers run. With BSVC_SECRET_KEY, put the new key before the old one, restart every process, run this, then remove the old key.',
    '--tokens signs the access tokens of one project’s users with a new secret instead. Older tokens work for the grace period (default: their lifetime); --grace 0s ends them immediately, and clients refresh.',
  ].join('\n'),
  examples: [
    'bsvc secrets rotate',
    'bsvc secrets rotate --tokens --project shop',
    'bsvc secrets rotate --tokens --project shop --grace 0s',
  ],
  audited: true,
  parameters: {
    tokens: flag('--tokens', 'the secret that signs access tokens of a project'),
    project: projectOption,
    grace: option('--grace <duration>', 'with --tokens: how long older tokens work', parseDuration),
  },
  async run(context, { tokens, project: named, grace }) {
    if (tokens) {
      const { app, project } = await chooseProject(context, named);
      const { kid } = await rotateTokenSecret(app, project, grace ?? app.config.accessTokenTtlMs);
      const text = `Access tokens of ${project.name} are signed with a new secret.`;
      return { json: { kid }, quiet: kid, text: () => text };
    }
    if (named !== undefined) throw new UsageError('--project goes with --tokens.');
    if (grace !== undefined) throw new UsageError('--grace goes with --tokens.');
    const result = await rotateSecrets(await context.app());
    return {
      json: result,
      quiet: result.reencrypted,
      text: () =>
        [
          ...(result.newKey ? ['A new key encrypts from now on.'] : []),
          `Encrypted ${countOf(result.reencrypted, 'stored secret')} again.`,
          ...(result.newKey ? ['Back up the data directory: its secret.key opens them.'] : []),
        ].join(' '),
    };
  },
});
