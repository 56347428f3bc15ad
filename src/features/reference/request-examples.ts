import type { ApiDocument, ApiParameter, Operation } from './api-document.js';

/** The text for a credential in an example: a variable. */
const CREDENTIALS: Readonly<Record<string, readonly [string, string]>> = {
  publishableKey: ['x-api-key', '$PUBLISHABLE_KEY'],
  secretKey: ['x-api-key', '$SECRET_KEY'],
  userToken: ['authorization', 'Bearer $ACCESS_TOKEN'],
  operatorToken: ['authorization', 'Bearer $OPERATOR_TOKEN'],
  adminToken: ['authorization', 'Bearer $BSVC_ADMIN_TOKEN'],
};

/** An operation as an example calls it. What differs from caller to caller is written `$LIKE_THIS`. */
interface ExampleRequest {
  method: string;
  address: string;
  headers: (readonly [string, string])[];
  body: { kind: 'json'; value: unknown } | { kind: 'form' | 'file' } | null;
}

type ExampleOf = [document: Pick<ApiDocument, 'components'>, method: string, path: string, operation: Operation];

/** A command for a shell that sends the operation, with its body's example. */
export function curlExample(...[document, method, path, operation]: ExampleOf): string {
  const { address, headers, body } = buildRequest(document, method, path, operation);
  const lines = [`curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"${address}"`];
  for (const [name, value] of headers) lines.push(`-H "${name}: ${value}"`);
  if (body?.kind === 'form') lines.push('-F file=@photo.png');
  if (body?.kind === 'file') lines.push('-H "content-type: image/png"', '--data-binary @photo.png');
  if (body?.kind === 'json') {
    const text = JSON.stringify(body.value, null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ');
    lines.push("-H 'content-type: application/json'", `-d '${text}'`);
  }
  return lines.join(' \\\n  ');
}

/** The same request as a script of a page or of Node.js sends it; `file` is a File or Blob. */
export function scriptExample(...[document, method, path, operation]: ExampleOf): string {
  const { address, headers, body } = buildRequest(document, method, path, operation);
  const sent = [...headers];
  if (body?.kind === 'json') sent.push(['content-type', 'application/json']);
  if (body?.kind === 'file') sent.push(['content-type', 'image/png']);
  const options = [
    ...(method === 'get' ? [] : [`method: '${method.toUpperCase()}'`]),
    ...(sent.length === 0
      ? []
      : [`headers: { ${sent.map(([name, value]) => `${memberName(name)}: ${scriptText(value)}`).join(', ')} }`]),
    ...(body === null ? [] : [`body: ${bodyText(body)}`]),
  ].map((option) => `  ${option},\n`);
  return [
    ...(body?.kind === 'form' ? ['const form = new FormData();', "form.append('file', file);"] : []),
    `const response = await fetch(${scriptText(address)}${options.length === 0 ? '' : `, {\n${options.join('')}}`});`,
    ...answerLines(operation),
  ].join('\n');
}

function buildRequest(
  ...[
    { components },
    method,
    path,
    {
      security: [security = {}],
      parameters,
      requestBody,
    },
  ]: ExampleOf
): ExampleRequest {
  const names = Object.keys(security);
  const query = names
    .filter((name) => components.securitySchemes[name]?.in === 'query')
    .map((name) => `${String(components.securitySchemes[name]!.name)}=$PUBLISHABLE_KEY`);
  const search = [...query, ...parameters.filter((each) => each.in === 'query').flatMap(exampleOf)].join('&');
  return {
    method,
    address: `$BSVC_URL${fill(path, parameters)}${search && `?${search}`}`,
    headers: names.flatMap((name) => (CREDENTIALS[name] ? [CREDENTIALS[name]] : [])),
    body: bodyOf(requestBody?.content ?? {}),
  };
}

/** Parts of the query that say something in an example: required ones, and those that have examples. */
function exampleOf({ name, required, schema }: ApiParameter): string[] {
  const [example] = Array.isArray(schema.examples) ? (schema.examples as (string | object)[]) : [];
  if (typeof example === 'object') return Object.entries(example).map(([field, value]) => `${field}=${value}`);
  if (example !== undefined) return [`${name}=${example}`];
  return required ? [`${name}=…`] : [];
}

function fill(path: string, parameters: readonly ApiParameter[]): string {
  return path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const examples = parameters.find((each) => each.name === name)?.schema.examples;
    return Array.isArray(examples)
      ? String(examples[0])
      : `$${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
  });
}

function bodyOf(content: NonNullable<Operation['requestBody']>['content']): ExampleRequest['body'] {
  if (content['multipart/form-data']) return { kind: 'form' };
  if (content['*/*']) return { kind: 'file' };
  const value = content['application/json']?.example;
  return value === undefined ? null : { kind: 'json', value };
}

function bodyText(body: NonNullable<ExampleRequest['body']>): string {
  if (body.kind !== 'json') return body.kind;
  return `JSON.stringify(${JSON.stringify(body.value, null, 2).replaceAll('\n', '\n  ')})`;
}

const memberName = (name: string): string => (/^\w+$/.test(name) ? name : `'${name}'`);

/** A text with `$NAMES` as one of JavaScript with variables. */
function scriptText(text: string): string {
  if (/^\$[A-Z_]+$/.test(text)) return text.slice(1);
  const inner = text.replace(/[\\`]/g, '\\$&').replace(/\$([A-Z_]+)/g, '${$1}');
  return inner.includes('${') ? `\`${inner}\`` : `'${inner.replaceAll("'", "\\'")}'`;
}

/** The lines that read the answer, where there is one. */
function answerLines({ responses }: Operation): string[] {
  const [, good] = Object.entries(responses).find(([status]) => status < '300') ?? [];
  const types = Object.keys(good?.content ?? {});
  const check = 'if (!response.ok) throw new Error((await response.json()).message);';
  if (types.length === 0) return [check];
  return [check, `const answer = await response.${types.some((type) => type.includes('json')) ? 'json' : 'text'}();`];
}
