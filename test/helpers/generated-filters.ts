import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import {
  EXACT_MATCH,
  FILTER_OPERATORS,
  listSuffixes,
  listUnstreamed,
  type FilterOperator,
} from '../../src/features/documents/query/filter-operators.js';

const ROOT = join(import.meta.dirname, '..', '..');
const MADE = '// Made by `npm run docs` from src/features/documents/query/filter-operators.ts.';

/** Files made from the table of filters, by path: the client and the console import nothing of the rest. */
export async function renderFilterFiles(): Promise<Record<string, string>> {
  const files = {
    'src/client/filter-suffixes.ts': clientTypes(),
    'src/console/parts/filter-choices.ts': consoleMenu(),
    'templates/docs/rest.md': guide(),
  };
  const made = Object.entries(files).map(async ([path, text]) => {
    const options = await resolveConfig(join(ROOT, path));
    return [path, await format(text, { ...options, filepath: path })] as const;
  });
  return Object.fromEntries(await Promise.all(made));
}

function clientTypes(): string {
  const of = (kind: FilterOperator['takes']): string =>
    FILTER_OPERATORS.filter(({ takes }) => takes === kind)
      .map(({ suffix }) => `'${suffix}'`)
      .join(' | ');
  const polled = FILTER_OPERATORS.filter(({ inStreams }) => !inStreams).map(({ suffix }) => suffix);
  return `${MADE}

/** The ends of a filter's names by what their values are: \`views_gt\`, \`tags_in\`. */
export interface Suffixes {
  ordered: ${of('ordered')};
  same: ${of('same')};
  list: ${of('list')};
  flag: ${of('flag')};
  text: ${of('text')};
  area: ${of('area')};
}

/** Filters that no stream takes. */
export const POLLED: RegExp = /(${polled.join('|')})=/;
`;
}

function consoleMenu(): string {
  const choices = [EXACT_MATCH, ...FILTER_OPERATORS].map(
    ({ suffix, label, takes }) => `['${suffix}=', '${label}', '${takes}']`,
  );
  return `${MADE}

/** The comparisons of a filter, each with how it is shown and what its value is. */
export const FILTER_CHOICES = [${choices.join(', ')}] as const;
`;
}

function guide(): string {
  const sentences = [
    `**Filters**: \`field=value\`, or \`field\` with ${listSuffixes()}.`,
    'Several filters must all match. Nested fields have dots: `meta.lang=en`. `filter[field_gt]=value` is the same as `field_gt=value`.',
    `An index of the field answers ${byIndex()}, an index of places (\`place:2dsphere\`) those of areas; the others read every document. Streams do not take ${listUnstreamed()}.`,
  ];
  const text = readFileSync(join(ROOT, 'templates', 'docs', 'rest.md'), 'utf8');
  return text.replace(/- \*\*Filters\*\*:[^]*?(?=\n- \*\*)/, () => `- ${sentences.join(' ')}`);
}

function byIndex(): string {
  const names = FILTER_OPERATORS.filter((operator) => operator.byIndex).map(({ suffix }) => `\`${suffix}\``);
  return `\`=\`, ${names.slice(0, -1).join(', ')} and ${names.at(-1)!}`;
}
