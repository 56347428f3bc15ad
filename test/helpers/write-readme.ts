import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectsFileSchema } from '../../src/features/declaration/project-declaration.js';
import { renewReadme } from './readme-tables.js';

// `npm run docs`: makes the README's tables of commands and settings, and the schema of bsvc.yaml for editors, anew
// from the code.
const root = join(import.meta.dirname, '..', '..');
const path = join(root, 'README.md');
writeFileSync(path, await renewReadme(readFileSync(path, 'utf8'), path));
writeFileSync(join(root, 'templates', 'bsvc.schema.json'), `${JSON.stringify(projectsFileSchema(), null, 2)}\n`);
