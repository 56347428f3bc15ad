import { defineProjectCommand } from '../../../ask/choose-project.js';
import { presentBucketResult } from './present.js';

export default defineProjectCommand({
  examples: ['bsvc byok bucket show --project shop'],
  run(context, { project }) {
    return presentBucketResult(project);
  },
});
