import { parseDuration } from '../../../src/config/setting-readers.js';
import { rotateKey } from '../../../src/features/projects/manage-keys.js';
import { KEY_TYPES } from '../../../src/features/projects/project.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { choice, defineCommand, option } from '../../shell/command.js';
import { chooseKeyType } from './choose-type.js';
import { presentNewKey } from './present.js';

const DEFAULT_GRACE = '24h';

export default defineCommand({
  details: `All older keys of the type go on working for the grace (default ${DEFAULT_GRACE}), so that clients can change over. --grace 0s ends them at once.`,
  examples: [
    'bsvc key rotate --project shop --type secret',
    'bsvc key rotate --project shop --type publishable --grace 7d --quiet',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    type: choice('--type <type>', 'which keys to replace', KEY_TYPES),
    grace: option('--grace <duration>', 'how long the old keys keep working', (text) => ({
      text,
      ms: parseDuration(text),
    })),
  },
  async run(context, input) {
    const type = await chooseKeyType(context, input.type);
    const grace = input.grace ?? { text: DEFAULT_GRACE, ms: parseDuration(DEFAULT_GRACE) };
    const { app, project } = await chooseProject(context, input.project);
    const old =
      grace.ms === 0
        ? 'The older ones no longer work.'
        : `The older ones go on working for ${grace.text}. One that has leaked ends at once with "bsvc key revoke <id>".`;
    return presentNewKey(app, await rotateKey(app, project, type, grace.ms), [old]);
  },
});
