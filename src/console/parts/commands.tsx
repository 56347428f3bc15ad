import { useState } from 'preact/hooks';
import { queryOf, type Address, type ApiPath } from '../api-paths.js';
import { project } from '../session.js';
import { Copy } from './basics.js';

/** One thing that the console does, as the command line and as a request. */
export interface CommandLine {
  /** Says what it does, where several are shown. */
  name?: string;
  /** Left out where the command line has no such command. */
  cli?: string;
  method?: string;
  path: Address<ApiPath>;
  query?: object;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
}

/** Shows the commands and requests behind a screen, so that the console teaches the main tool. */
export function Commands({ more = [], ...first }: CommandLine & { more?: readonly CommandLine[] }) {
  return <CommandList lines={() => [first, ...more]} />;
}

/** The same of lines that are made when somebody looks at them. */
export function CommandList({ lines }: { lines: () => readonly CommandLine[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="commands" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a command</summary>
      {isOpen &&
        lines().map((line) => <Line key={`${line.method ?? ''} ${line.path}${queryOf(line.query ?? {})}`} {...line} />)}
    </details>
  );
}

function Line({ name, cli, ...request }: CommandLine) {
  const curl = writeCurl(request);
  return (
    <>
      {name && <h3>{name}</h3>}
      {cli !== undefined && (
        <p>
          <code>{cli}</code> <Copy text={cli} what="Command" />
        </p>
      )}
      <p>
        <code>{curl}</code> <Copy text={curl} what="Request" />
      </p>
    </>
  );
}

function writeCurl({
  method = 'GET',
  path,
  query = {},
  body,
  headers = {},
}: Omit<CommandLine, 'name' | 'cli'>): string {
  const base = new URL('..', document.baseURI).href.replace(/\/$/, '');
  const sent = { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers };
  return [
    'curl',
    ...(method === 'GET' ? [] : ['-X', method]),
    '-H "Authorization: Bearer $TOKEN"',
    ...Object.entries(sent).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : ['-d', quote(JSON.stringify(body))]),
    quote(base + path + queryOf(query)),
  ].join(' ');
}

/** The project of this place, as a word of a command. */
export const projectWord = (): string => quote(project.value?.name ?? '');
export const ofProject = (): string => `--project ${projectWord()}`;

/** A word of a shell. */
export const quote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
