import { clearBucket } from '../../../../src/features/files/bucket/set-bucket.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { defineCommand } from '../../../shell/command.js';
import { presentBucketResult } from './present.js';

export default defineCommand({
  details:
    'New files go to the service’s own storage again; what is in the bucket stays there and is no longer managed.',
  examples: ['bsvc byok bucket clear --project shop'],
  audited: true,
  parameters: { project: projectOption },
  async run(context, { project: named }) {
    const { app, project } = await chooseProject(context, named);
    return presentBucketResult(await clearBucket(app, project));
  },
});
