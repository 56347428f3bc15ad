import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectsFileSchema } from '../src/features/operators/project-declaration.js';
import { renewReadme } from './helpers/readme-tables.js';

const path = join(import.meta.dirname, '..', 'README.md');
const readme = readFileSync(path, 'utf8');

describe('README.md', () => {
  it('has the tables of commands and settings that the code makes (npm run docs)', async () => {
    expect(readme).toBe(await renewReadme(readme, path));
  });

  it('names the two commands of a fresh machine', () => {
    expect(readme).toContain('./install.sh --run');
    expect(readme).toContain('npm ci && npm test');
  });
});

describe('templates/bsvc.schema.json', () => {
  it('is the schema of bsvc.yaml that the code checks (npm run docs)', () => {
    const shipped = readFileSync(join(import.meta.dirname, '..', 'templates', 'bsvc.schema.json'), 'utf8');
    expect(JSON.parse(shipped)).toEqual(projectsFileSchema());
  });
});
