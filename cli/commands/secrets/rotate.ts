import { rotateSecrets } from '../../../src/features/store-copies/rotate-secrets.js';
import { defineCommand } from '../../shell/command.js';
import { countOf } from '../../view/present-amount.js';

export default defineCommand({
  details: `Makes a new key in the data directory and seals stored secrets with it; running servers go on. With BSVC_SECRET_KEY, put the new key in front of the old one,
restart every process, run this, then take the old key out.`,
  examples: ['bsvc secrets rotate', 'bsvc secrets rotate --json'],
  audited: true,
  async run(context) {
    const result = await rotateSecrets(await context.app());
    return {
      json: result,
      quiet: result.resealed,
      text: () =>
        [
          ...(result.newKey ? ['A new key seals from now on.'] : []),
          `Resealed ${countOf(result.resealed, 'stored secret')}.`,
          ...(result.newKey ? ['Back up the data directory: its secret.key opens them.'] : []),
        ].join(' '),
    };
  },
});
