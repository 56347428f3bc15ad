import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renewReadme } from './readme-tables.js';

// `npm run docs`: makes the README's tables of commands and settings anew from the code.
const path = join(import.meta.dirname, '..', '..', 'README.md');
writeFileSync(path, await renewReadme(readFileSync(path, 'utf8'), path));
