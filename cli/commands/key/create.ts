import { createKey } from '../../../src/features/projects/manage-keys.js';
import { KEY_TYPES } from '../../../src/features/projects/project.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { choice, defineCommand, option } from '../../shell/command.js';
import { chooseKeyType } from './choose-type.js';
import { presentNewKey } from './present.js';

export default defineCommand({
  examples: [
    "bsvc key create --project shop --type secret --name 'nightly import'",
    'KEY=$(bsvc key create --project shop --type secret --quiet)',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    type: choice('--type <type>', 'for browsers (publishable) or for servers (secret)', KEY_TYPES),
    name: option('--name <name>', 'name, to tell it from other keys'),
  },
  async run(context, input) {
    const type = await chooseKeyType(context, input.type);
    const { app, project } = await chooseProject(context, input.project);
    return presentNewKey(app, await createKey(app, project, type, input.name));
  },
});
