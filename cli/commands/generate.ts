import { ROUTE_LISTS } from '../../src/api.js';
import { invalid, unavailable, type AppError } from '../../src/errors.js';
import { describeProject } from '../../src/features/project-types/described-project.js';
import { HOOK_TYPES } from '../../src/features/project-types/hook-types.js';
import { writeProjectFile, type ProjectFile } from '../../src/features/project-types/project-files.js';
import { chooseProject, projectOption } from '../ask/choose.js';
import { argument, defineCommand, flag, option, secret, type SecretSource } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { readSecret } from '../shell/read-secret.js';
import { giveFile, requireFresh, writeClient } from '../formats/write-client.js';
import { UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';

const SERVER_MS = 10_000;

const FILES = {
  types: 'types.d.ts',
  openapi: 'openapi.json',
  'json-schema': 'schema.json',
} as const;
const OF_PROJECT = ['key', 'secretKey', 'url', 'out', 'check'] as const;

/** What can be made, and the options that it takes besides --project. */
const TAKES: Readonly<Record<string, readonly string[]>> = {
  types: [...OF_PROJECT, 'hooks'],
  openapi: OF_PROJECT,
  'json-schema': OF_PROJECT,
  client: ['out', 'check'],
};
const KINDS = Object.keys(TAKES);

export default defineCommand({
  details: [
    'types: for createClient<Project>(): the documents of each collection, and what you can write, filter and populate.',
    'openapi, json-schema: the API of the project, or its documents, for generators.',
    'client: the package @bsvc/client in the directory of --out, to be committed next to the application: npm install ./bsvc-client installs it without a running server, and the lock file stays valid when the server is upgraded.',
    'For browsers use --key publishable: it omits protected and hidden fields, and server-only collections.',
    'Without --out, writes to standard output. --check writes nothing and exits with 1 if the file is out of date.',
  ].join('\n'),
  examples: [
    'bsvc generate types --project shop --out src/bsvc.d.ts',
    'bsvc generate types --project shop --key publishable --out src/bsvc.d.ts --check',
    'bsvc generate types --url https://api.example.com --key pk_live_… --out src/bsvc.d.ts',
    'bsvc generate types --project shop --hooks --out hooks/bsvc.d.ts',
    'bsvc generate openapi --project shop --out openapi.json',
    'bsvc generate client --out bsvc-client',
    'bsvc generate json-schema --project shop --out documents.schema.json',
  ],
  parameters: {
    what: argument('what', KINDS.join(', ')),
    project: projectOption,
    key: option(
      '--key <key>',
      'view of a key: publishable or secret (default); with --url, the publishable key itself',
    ),
    secretKey: secret('secret-key', 'the secret key, with --url and without --key'),
    url: option('--url <address>', 'ask a running server instead of the database'),
    out: option('--out <path>', 'file to write or check; for client, a directory'),
    hooks: flag('--hooks', 'with types: also those of own code, which needs the package @bsvc/client'),
    check: flag('--check', 'only compare, for CI'),
  },
  async run(context, { what, ...input }) {
    const takes = Object.hasOwn(TAKES, what) ? TAKES[what] : undefined;
    if (!takes) throw new UsageError(`"${what}" is nothing to generate: give ${KINDS.join(', ')}.`);
    const {
      project: _,
      secretKey: { stdin, env },
      ...rest
    } = input;
    const given = Object.entries({ ...rest, secretKey: stdin || env }).filter(([, value]) => value);
    const [other] = given.find(([name]) => !takes.includes(name)) ?? [];
    if (other !== undefined) {
      const flag = other === 'secretKey' ? 'secret-key-…' : other;
      throw new UsageError(`--${flag} does not go with ${what}.`);
    }
    if (what === 'client') return writeClient(context, input);
    return writeOrCheck(context, FILES[what as keyof typeof FILES], `bsvc generate ${what}`, input);
  },
});

interface ProjectFileInput {
  project: string | undefined;
  key: string | undefined;
  secretKey: SecretSource;
  url: string | undefined;
  out: string | undefined;
  hooks: boolean;
  check: boolean;
}

/** Writes the file, or with `--check` compares it: exit 1 where it differs. */
async function writeOrCheck(
  context: Context,
  file: ProjectFile,
  command: string,
  input: ProjectFileInput,
): Promise<Result> {
  const { key, secretKey, url, out, hooks, check } = input;
  if (check && out === undefined) throw new UsageError('--check needs --out: the file to compare.');
  const isSecretGiven = secretKey.stdin || secretKey.env !== undefined;
  if (isSecretGiven && (url === undefined || key !== undefined)) {
    throw new UsageError('--secret-key-stdin and --secret-key-env go with --url, and without --key.');
  }
  const { text: written, of } =
    url === undefined ? await fromDatabase(context, file, input) : await fromServer(context, url, file, input);
  const text = hooks ? `${written}\n${HOOK_TYPES}` : written;
  if (check) {
    const from = url === undefined ? `--project ${of}` : `--url ${url}`;
    return requireFresh(
      context,
      out!,
      text,
      `${command} ${from}${key === undefined ? '' : ` --key ${key}`}${hooks ? ' --hooks' : ''} --out ${out}`,
    );
  }
  return giveFile(context, out, { text, json: file === 'types.d.ts' ? { types: text } : JSON.parse(text), of });
}

async function fromDatabase(
  context: Context,
  file: ProjectFile,
  { project: named, key = 'secret' }: ProjectFileInput,
): Promise<{ text: string; of: string }> {
  if (key !== 'publishable' && key !== 'secret') {
    throw new UsageError('--key takes publishable or secret; a key itself goes with --url.');
  }
  const { app, project } = await chooseProject(context, named);
  const described = await describeProject(app, project, { isPublic: key === 'publishable' });
  return { text: await writeProjectFile(file, ROUTE_LISTS, described, app.config.publicUrl), of: project.name };
}

async function fromServer(
  context: Context,
  url: string,
  file: ProjectFile,
  { key: publishable, secretKey }: ProjectFileInput,
): Promise<{ text: string; of: string }> {
  if (publishable !== undefined && !publishable.startsWith('pk_')) {
    throw new UsageError(
      '--key takes the publishable key with --url; add the secret key with --secret-key-stdin or --secret-key-env <NAME>.',
    );
  }
  if (!URL.canParse(url)) throw new UsageError(`--url takes the address of a server, such as https://api.example.com.`);
  const key = publishable ?? (await readSecret(context, secretKey, 'Secret key'));
  const address = `${url.replace(/\/+$/, '')}/api/schemas/${file}`;
  let response: Response;
  try {
    response = await fetch(address, { headers: { 'x-api-key': key }, signal: AbortSignal.timeout(SERVER_MS) });
  } catch (cause) {
    throw unavailable(
      'SERVER_UNREACHABLE',
      `There is no answer from ${address}: check the address, and whether the server runs`,
      { cause },
    );
  }
  const text = await response.text();
  if (!response.ok) throw refusal(response.status, text, address);
  return { text, of: `the project at ${url}` };
}

function refusal(status: number, text: string, address: string): AppError {
  let message = `${address} answered ${status}`;
  try {
    const said = (JSON.parse(text) as { message?: unknown }).message;
    if (typeof said === 'string') message += `: ${said.slice(0, 500)}`;
  } catch {
    message += ': is it a bsvc server?';
  }
  return invalid('SERVER_REFUSED', message);
}
