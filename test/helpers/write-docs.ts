import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectsFileSchema } from '../../src/features/declaration/project-declaration.js';
import { ENGINE_README, renderEngineReadme } from '../../src/engine/test/helpers/engine-readme.js';
import { REST_GUIDE, renderRestGuide } from './generated-filters.js';
import { renderCommandsPage, renderSettingsPage } from './generated-docs.js';
import { GUIDES_FOLDER } from './guide-examples.js';

// `npm run docs`: makes the guides of commands and settings, the guide's sentences about filters, the schema of
// bsvc.yaml for editors, and the lists in the engine's README from the code.
// `npm run docs -- pictures [folder]` takes pictures of the console instead, and renews the one of the README; by
// default they come into a folder `pictures`.
const [what, folder = 'pictures'] = process.argv.slice(2);
if (what === 'pictures') {
  const { takePictures } = await import('./console-pictures.js');
  console.log(`${await takePictures(folder, join(GUIDES_FOLDER, 'console.png'))} pictures in ${folder}`);
  process.exit();
}
writeFileSync(join(GUIDES_FOLDER, 'commands.md'), await renderCommandsPage());
writeFileSync(join(GUIDES_FOLDER, 'settings.md'), await renderSettingsPage());
writeFileSync(join(GUIDES_FOLDER, '..', '..', REST_GUIDE), await renderRestGuide());
writeFileSync(ENGINE_README, renderEngineReadme());
const schema = join(GUIDES_FOLDER, '..', 'bsvc.schema.json');
writeFileSync(schema, `${JSON.stringify(projectsFileSchema(), null, 2)}\n`);
