import { parseDuration } from '../../../src/config/setting-readers.js';
import { rotateTokenSecret } from '../../../src/features/projects/rotate-token-secret.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { option } from '../../shell/command.js';

export default defineProjectCommand({
  details:
    'A new secret signs the access tokens of a project’s users. Older tokens work for the grace (default: as long as one can live); --grace 0s ends them all at once, and clients refresh.',
  examples: ['bsvc secrets rotate-tokens --project shop', 'bsvc secrets rotate-tokens --project shop --grace 0s'],
  audited: true,
  parameters: {
    grace: option('--grace <duration>', 'how long older tokens go on working', parseDuration),
  },
  async run(context, { app, project, grace }) {
    const { kid } = await rotateTokenSecret(app, project, grace ?? app.config.accessTokenTtlMs);
    return { json: { kid }, quiet: kid, text: () => `Access tokens of ${project.name} are signed with a new secret.` };
  },
});
