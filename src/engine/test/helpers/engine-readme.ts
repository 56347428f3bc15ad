import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENGINE_COMMANDS } from '../../commands/index.js';
import { supportedStages } from '../../pipeline/compile.js';
import { supportedWindowFunctions } from '../../pipeline/stages/window-functions.js';
import { supportedExpressions } from '../../query/expression.js';
import { supportedQueryOperators } from '../../query/match/match.js';
import { supportedAccumulators } from '../../query/operators/accumulators.js';
import { supportedUpdateOperators } from '../../query/update/update.js';

export const ENGINE_README = join(import.meta.dirname, '..', '..', 'README.md');

/** The lists of names in the engine's README, by the heading that stands right above each. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  Commands: Object.keys(ENGINE_COMMANDS).sort(),
  Filters: supportedQueryOperators,
  Updates: supportedUpdateOperators,
  Stages: supportedStages,
  Accumulators: supportedAccumulators,
  'Window functions': supportedWindowFunctions,
  Expressions: supportedExpressions,
};

/** The engine's README with its lists as the code has them; throws when one of the headings is gone. */
export function renderEngineReadme(): string {
  let text = readFileSync(ENGINE_README, 'utf8');
  for (const [heading, names] of Object.entries(LISTS)) {
    const parts = text.split(`### ${heading}\n\n`);
    if (parts.length !== 2) throw new Error(`src/engine/README.md has no heading ${heading}, or two`);
    const rest = parts[1]!.slice(parts[1]!.indexOf('\n\n'));
    text = `${parts[0]}### ${heading}\n\n${names.map((name) => `\`${name}\``).join(' ')}${rest}`;
  }
  return text;
}
