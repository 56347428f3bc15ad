import type { ApiDocument, ApiParameter, Operation } from './api-document.js';

/** The text for a credential in an example: a variable of the shell. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  publishableKey: 'x-api-key: $PUBLISHABLE_KEY',
  secretKey: 'x-api-key: $SECRET_KEY',
  userToken: 'authorization: Bearer $ACCESS_TOKEN',
  operatorToken: 'authorization: Bearer $OPERATOR_TOKEN',
  adminToken: 'authorization: Bearer $BSVC_ADMIN_TOKEN',
};

/** A command for a shell that sends the operation, with its body's example. */
export function curlExample(
  { components }: Pick<ApiDocument, 'components'>,
  method: string,
  path: string,
  operation: Operation,
): string {
  const [security = {}] = operation.security;
  const query = Object.keys(security)
    .filter((name) => components.securitySchemes[name]?.in === 'query')
    .map((name) => `${String(components.securitySchemes[name]!.name)}=$PUBLISHABLE_KEY`);
  const asked = operation.parameters.filter((each) => each.in === 'query').flatMap(exampleOf);
  const search = [...query, ...asked].join('&');
  const lines = [
    `curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$BSVC_URL${fill(path, operation.parameters)}${search && `?${search}`}"`,
  ];
  for (const name of Object.keys(security)) if (CREDENTIALS[name]) lines.push(`-H "${CREDENTIALS[name]}"`);
  lines.push(...bodyLines(operation));
  return lines.join(' \\\n  ');
}

/** Parts of the query that say something in an example: required ones, and those that have examples. */
function exampleOf({ name, required, schema, explode }: ApiParameter): string[] {
  const [example] = Array.isArray(schema.examples) ? (schema.examples as unknown[]) : [];
  if (explode && example) return Object.entries(example).map(([field, value]) => `${field}=${value}`);
  if (example !== undefined) return [`${name}=${String(example)}`];
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

function bodyLines({ requestBody }: Operation): string[] {
  if (!requestBody) return [];
  const { content } = requestBody;
  if (content['multipart/form-data']) return ['-F file=@photo.png'];
  if (content['*/*']) return ['-H "content-type: image/png"', '--data-binary @photo.png'];
  const example = content['application/json']?.example;
  if (example === undefined) return [];
  return [
    "-H 'content-type: application/json'",
    `-d '${JSON.stringify(example, null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')}'`,
  ];
}
