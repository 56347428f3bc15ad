import { defineCommand } from '../../shell/command.js';
import { PROJECT_FILE_OPTIONS, writeOrCheck } from './project-file.js';

export default defineCommand({
  details:
    'What applications call with the keys of the project, with the fields of its collections: for generators of clients. Without --out it goes to standard output.',
  examples: [
    'bsvc generate openapi --project shop --out openapi.json',
    'bsvc generate openapi --project shop | jq .paths',
  ],
  parameters: PROJECT_FILE_OPTIONS,
  run: (context, input) => writeOrCheck(context, 'openapi.json', 'bsvc generate openapi', input),
});
