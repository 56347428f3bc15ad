import { addressOf } from '../api.js';
import { Copy } from '../parts/basics.js';
import { quote } from '../parts/shell-word.js';
import { project } from '../session.js';
import { clientCall, queryOptions } from './list-samples.js';
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
  const call = clientCall(name, named);
  const options = queryOptions(named);
  return [
    ['Address', address],
    ['curl', `curl -H "x-api-key: $KEY" ${quote(address)}`],
    ...(call === null ? [] : [['Client', call] as const]),
    ...(options === null
      ? []
      : [['Command', `bsvc data query ${name} ${ofProject()}${options && ` ${options}`}`] as const]),
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
