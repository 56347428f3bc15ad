import { addressOf } from '../api.js';
import { Copy } from '../parts/basics.js';
import { quote } from '../parts/commands.js';
import { project } from '../session.js';
import { queryIn, type QueryKind } from './use-run.js';

/** The same query as an app, a script or a terminal asks it. */
export function CodeSamples({ kind, name, text }: { kind: QueryKind; name: string; text: string }) {
  const samples = kind === 'list' ? listSamples(name, queryIn(text)) : pipelineSamples(name, text);
  return (
    <details class="commands">
      <summary>As code</summary>
      {samples.map(([label, code]) => (
        <div key={label} class="sample">
          <h2>
            {label} <Copy text={code} what={label} />
          </h2>
          <pre tabIndex={0} aria-label={label}>
            {code}
          </pre>
        </div>
      ))}
    </details>
  );
}

const ofProject = (): string => `--project ${quote(project.value?.name ?? '')}`;

type Sample = readonly [label: string, code: string];

function listSamples(name: string, query: string): Sample[] {
  const address = addressOf(`/api/data/${encodeURIComponent(name)}${query === '' ? '' : `?${query}`}`);
  const named = [...new URLSearchParams(query)];
  const options = named
    .filter(([key]) => !OPTIONS.has(key) && key !== 'include_deleted')
    .map(([key, value]) => ` --filter ${quote(`${key}=${value}`)}`);
  const own = named.filter(([key]) => COMMAND_OPTIONS.has(key)).map(([key, value]) => ` --${key} ${quote(value)}`);
  const trash = { true: ' --include-deleted', only: ' --only-deleted' };
  const flags = named.map(([key, value]) => {
    if (key === 'count' && value === 'true') return ' --count';
    return key === 'include_deleted' ? (trash[value as keyof typeof trash] ?? '') : '';
  });
  return [
    ['Address', address],
    ['curl', `curl -H "x-api-key: $KEY" ${quote(address)}`],
    ['Client', clientCall(name, named)],
    ['Command', `bsvc data query ${name} ${ofProject()}${options.join('')}${own.join('')}${flags.join('')}`],
  ];
}

function pipelineSamples(name: string, text: string): Sample[] {
  const pipeline = compact(text);
  const address = addressOf(`/api/data/${encodeURIComponent(name)}/aggregate`);
  const body = quote(`{"pipeline":${pipeline}}`);
  return [
    ['curl', `curl -H "x-api-key: $KEY" -H 'content-type: application/json' -d ${body} ${quote(address)}`],
    ['Client', `const rows = await api.collection('${name}').aggregate(${text.trim()});`],
    ['Command', `bsvc data aggregate ${name} ${quote(pipeline)} ${ofProject()}`],
  ];
}

function compact(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

const COMMAND_OPTIONS = new Set(['sort', 'fields', 'populate', 'limit', 'page']);
const OPTIONS = new Set([...COMMAND_OPTIONS, 'count', 'cursor', 'skip', 'expand', 'meta']);

/** The call of the client: its options beside the filter. */
function clientCall(name: string, query: readonly (readonly [string, string])[]): string {
  // Without a prototype, as names come from whatever was pasted.
  const filter = Object.create(null) as Record<string, string | string[]>;
  const options: Record<string, unknown> = {};
  for (const [key, value] of query) {
    const option = optionOf(key, value);
    if (option) options[option[0]] = option[1];
    else if (!OPTIONS.has(key)) filter[key] = key in filter ? [filter[key]!, value].flat() : value;
  }
  const hasFilter = Object.keys(filter).length > 0;
  if (query.some(([key, value]) => key === 'count' && value === 'true')) {
    return `const count = await api.collection('${name}').count(${hasFilter ? literal(filter) : ''});`;
  }
  const all = { ...(hasFilter && { filter }), ...options };
  return `const page = await api.collection('${name}').list(${Object.keys(all).length > 0 ? literal(all) : ''});`;
}

/** An option of the client that is no filter; null for any other parameter. */
function optionOf(key: string, value: string): readonly [name: string, value: unknown] | null {
  if (key === 'limit' || key === 'page') return [key, Number(value)];
  if (key === 'include_deleted') return ['includeDeleted', value === 'only' ? 'only' : true];
  if (key === 'cursor') return [key, value];
  const isList = key === 'fields' || key === 'populate' || (key === 'sort' && value.includes(','));
  if (isList) return [key, value.split(',')];
  return key === 'sort' ? [key, value] : null;
}

/** As people write objects: names without quotes where they need none. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value === 'string') return `'${escape(value)}'`;
  if (typeof value !== 'object' || value === null) return String(value);
  const entries = Object.entries(value).map(
    ([key, each]) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : `'${escape(key)}'`}: ${literal(each)}`,
  );
  return `{ ${entries.join(', ')} }`;
}

const escape = (text: string): string => text.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n');
