import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { defineCommand } from '../../../shell/command.js';
import { presentBucketResult } from './present.js';

export default defineCommand({
  examples: ['bsvc byok bucket show --project shop'],
  parameters: { project: projectOption },
  async run(context, { project: named }) {
    const { project } = await chooseProject(context, named);
    return presentBucketResult(project);
  },
});
