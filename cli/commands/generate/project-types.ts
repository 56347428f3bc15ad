import { defineCommand } from '../../shell/command.js';
import { PROJECT_FILE_OPTIONS, writeOrCheck } from './project-file.js';

export default defineCommand({
  details: [
    'Types for createClient<Project>(): what documents of each collection are made of, and what may be sent, filtered and populated.',
    'A browser uses --key publishable: without protected and hidden fields, and without collections that only the secret key reaches.',
    'Without --out the file goes to standard output. With --check nothing is written: exit 1 when the file is out of date.',
  ].join('\n'),
  examples: [
    'bsvc generate types --project shop --out src/bsvc.d.ts',
    'bsvc generate types --project shop --key publishable --out src/bsvc.d.ts --check',
    'bsvc generate types --url https://api.example.com --key pk_live_… --out src/bsvc.d.ts',
  ],
  parameters: PROJECT_FILE_OPTIONS,
  run: (context, input) => writeOrCheck(context, 'types.d.ts', 'bsvc generate types', input),
});
