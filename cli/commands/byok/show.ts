import { defineProjectCommand } from '../../ask/choose-project.js';
import { presentByok } from './present.js';

export default defineProjectCommand({
  examples: ['bsvc byok show --project shop'],
  run(context, { project }) {
    return presentByok(project);
  },
});
