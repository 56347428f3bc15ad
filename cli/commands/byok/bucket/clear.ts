import { clearBucket } from '../../../../src/features/files/bucket/set-bucket.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { presentBucketResult } from './present.js';

export default defineProjectCommand({
  details:
    'New files go to the service’s own storage again; what is in the bucket stays there and is no longer managed.',
  examples: ['bsvc byok bucket clear --project shop', 'bsvc byok bucket clear --project shop --yes'],
  audited: true,
  destroys: ({ project }) => ({ what: `Forgets the bucket of ${project.name} and its secret.`, name: project.name }),
  async run(context, { app, project }) {
    return presentBucketResult(await clearBucket(app, project));
  },
});
