import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { STORAGE_FORMAT } from '../storage/format/format-record.js';
import { ENGINE_README, renderEngineReadme } from './helpers/engine-readme.js';

describe('src/engine/README.md', () => {
  const text = readFileSync(ENGINE_README, 'utf8');

  it('lists the commands, operators and stages of the code: `npm run docs` writes them', () => {
    expect(text).toBe(renderEngineReadme());
  });

  it('describes the storage format that is written', () => {
    expect(text).toContain(`## Storage format ${STORAGE_FORMAT}`);
  });
});
