import { applyBucketCors } from '../../../../src/features/files/bucket/set-bucket.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { list } from '../../../shell/command.js';

export default defineProjectCommand({
  details: 'Browsers may then PUT to signed addresses and read files. Replaces the CORS rules of the bucket.',
  examples: [
    'bsvc byok bucket cors --project shop --origin https://shop.example',
    'bsvc byok bucket cors --project shop --origin "*"',
  ],
  audited: true,
  parameters: {
    origins: list('--origin <origin>', 'origin of pages that upload (default: any)'),
  },
  async run(context, { app, project, origins }) {
    const allowed = origins.length > 0 ? origins : ['*'];
    await applyBucketCors(app, project, allowed);
    return {
      json: { origins: allowed, methods: ['PUT', 'GET', 'HEAD'], headers: ['content-type', 'content-length'] },
      quiet: allowed,
      text: () => `Pages of ${allowed.join(', ')} may upload to the bucket and read from it.`,
    };
  },
});
