import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectsFileSchema } from '../../src/features/declaration/project-declaration.js';
import { ENGINE_README, renderEngineReadme } from './engine-readme.js';
import { renderCommandsPage, renderSettingsPage } from './generated-docs.js';
import { GUIDES_FOLDER } from './guide-examples.js';

// `npm run docs`: makes the guides of commands and settings, the schema of bsvc.yaml for editors, and the lists in the
// engine's README anew from the code.
writeFileSync(join(GUIDES_FOLDER, 'commands.md'), await renderCommandsPage());
writeFileSync(join(GUIDES_FOLDER, 'settings.md'), await renderSettingsPage());
writeFileSync(ENGINE_README, renderEngineReadme());
const schema = join(GUIDES_FOLDER, '..', 'bsvc.schema.json');
writeFileSync(schema, `${JSON.stringify(projectsFileSchema(), null, 2)}\n`);
