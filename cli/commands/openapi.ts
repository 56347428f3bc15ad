import { ROUTE_LISTS } from '../../src/api.js';
import { publicPath } from '../../src/config/public-path.js';
import { describeProject } from '../../src/features/project-types/described-project.js';
import { writeProjectFile } from '../../src/features/project-types/project-files.js';
import { defineProjectCommand } from '../ask/choose-project.js';
import { giveFile } from '../formats/give-file.js';
import { option } from '../shell/command.js';

export default defineProjectCommand({
  details:
    'What applications call with the keys of the project, with the fields of its collections: for generators of clients. Without --out it goes to standard output.',
  examples: ['bsvc openapi --project shop --out openapi.json', 'bsvc openapi --project shop | jq .paths'],
  parameters: { out: option('--out <file>', 'file to write') },
  async run(context, { app, project, out }) {
    const described = await describeProject(app, project, { isPublic: false });
    const text = await writeProjectFile('openapi.json', ROUTE_LISTS, described, publicPath(app.config));
    return giveFile(context, out, { text, json: JSON.parse(text) as unknown, of: project.name });
  },
});
