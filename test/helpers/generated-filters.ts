import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { FILTER_OPERATORS, listSuffixes, listUnstreamed } from '../../src/features/documents/query/filter-operators.js';

const ROOT = join(import.meta.dirname, '..', '..');
/** The guide of the REST API, with its list of filters. */
export const REST_GUIDE = 'templates/docs/data.md';

/** The guide, with the sentences that are made from the table of filters. */
export async function renderRestGuide(): Promise<string> {
  const path = join(ROOT, REST_GUIDE);
  return format(guide(), { ...(await resolveConfig(path)), filepath: path });
}

function guide(): string {
  const sentences = [
    `**Filters**: \`field=value\`, or \`field\` with ${listSuffixes()}.`,
    'All filters must match. Use dots for nested fields: `meta.lang=en`. `filter[field_gt]=value` is the same as `field_gt=value`.',
    `Add an index of the field for ${byIndex()}, and a \`2dsphere\` index for areas. All other filters scan the collection. Streams do not take ${listUnstreamed()}.`,
  ];
  const text = readFileSync(join(ROOT, REST_GUIDE), 'utf8');
  return text.replace(/- \*\*Filters\*\*:[^]*?(?=\n- \*\*)/, () => `- ${sentences.join(' ')}`);
}

function byIndex(): string {
  const names = FILTER_OPERATORS.filter((operator) => operator.byIndex).map(({ suffix }) => `\`${suffix}\``);
  return `\`=\`, ${names.slice(0, -1).join(', ')} and ${names.at(-1)!}`;
}
