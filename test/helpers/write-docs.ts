import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectsFileSchema } from '../../src/features/declaration/project-declaration.js';
import { renderCommandsPage, renderSettingsPage } from './generated-docs.js';
import { GUIDES_FOLDER } from './guide-examples.js';

// `npm run docs`: makes the guides of commands and settings, and the schema of bsvc.yaml for editors, anew from the
// code.
writeFileSync(join(GUIDES_FOLDER, 'commands.md'), await renderCommandsPage());
writeFileSync(join(GUIDES_FOLDER, 'settings.md'), await renderSettingsPage());
const schema = join(GUIDES_FOLDER, '..', 'bsvc.schema.json');
writeFileSync(schema, `${JSON.stringify(projectsFileSchema(), null, 2)}\n`);
