import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ENGINE_COMMANDS } from '../../src/engine/commands/index.js';
import { supportedStages } from '../../src/engine/pipeline/compile.js';
import { supportedWindowFunctions } from '../../src/engine/pipeline/stages/window-functions.js';
import { supportedExpressions } from '../../src/engine/query/expression.js';
import { supportedQueryOperators } from '../../src/engine/query/match/match.js';
import { supportedAccumulators } from '../../src/engine/query/operators/accumulators.js';
import { supportedUpdateOperators } from '../../src/engine/query/update/update.js';
import { STORAGE_FORMAT } from '../../src/engine/storage/file/environment.js';

const text = readFileSync(new URL('../../src/engine/README.md', import.meta.url), 'utf8');

/** The names in the paragraph right below a heading. */
function listed(heading: string): string[] {
  const paragraph = text.split(`### ${heading}\n\n`)[1]?.split('\n\n')[0] ?? '';
  return [...paragraph.matchAll(/`(\$?\w+)`/g)].map((match) => match[1]!);
}

describe('src/engine/README.md', () => {
  it.each<[string, readonly string[]]>([
    ['Commands', Object.keys(ENGINE_COMMANDS).sort()],
    ['Filters', supportedQueryOperators],
    ['Updates', supportedUpdateOperators],
    ['Stages', supportedStages],
    ['Accumulators', supportedAccumulators],
    ['Window functions', supportedWindowFunctions],
    ['Expressions', supportedExpressions],
  ])('lists the %s of the code', (heading, supported) => {
    expect(listed(heading)).toEqual(supported);
  });

  it('describes the storage format that is written', () => {
    expect(text).toContain(`## Storage format ${STORAGE_FORMAT}`);
  });
});
