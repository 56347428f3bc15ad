import { useState } from 'preact/hooks';
import { queryOf } from '../api-paths.js';
import type { Prepared } from '../api.js';
import { shownOptions } from '../query/list-samples.js';
import { project } from '../session.js';
import { Copy } from './basics.js';
import { quoteShell } from '../../exchange/shell-word.js';

/** As JSON; the build puts it here, from the routes themselves. */
declare const ROUTE_COMMANDS: string;

/** The command of each route that has one. */
const COMMANDS = Object.entries(JSON.parse(ROUTE_COMMANDS) as Record<string, string>);

/** Shows the requests behind a screen and the commands that do the same, so that the console teaches the main tool. */
export function Commands({ of }: { of: readonly Prepared[] | (() => readonly Prepared[]) }) {
  const [isOpen, setOpen] = useState(false);
  const lines = isOpen ? (typeof of === 'function' ? of() : of) : [];
  return (
    <details class="commands" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a command</summary>
      {lines.map((line) => (
        <Line key={`${line.method} ${line.path}${queryOf(line.query ?? {})}`} {...line} />
      ))}
    </details>
  );
}

function Line(request: Prepared) {
  const command = writeCommand(request);
  const curl = writeCurl(request);
  return (
    <>
      {command !== null && (
        <p>
          <code>{command}</code> <Copy text={command} what="Command" />
        </p>
      )}
      <p>
        <code>{curl}</code> <Copy text={curl} what="Request" />
      </p>
    </>
  );
}

/** Commands of lists, which take what narrows and orders them as options. */
const LISTS: ReadonlySet<string> = new Set(['data query', 'data export']);

/**
 * The command with what the path names, and of a list with what is shown; other options are those of `--help`. null
 * where there is none.
 */
function writeCommand({ method, path, query = {} }: Prepared): string | null {
  const parts = path.split('?', 1)[0]!.split('/');
  for (const [route, command] of COMMANDS) {
    const [own, template = ''] = route.split(' ');
    const names = template.split('/');
    const isParameter = (at: number): boolean => names[at]!.startsWith('{');
    if (own !== method || names.length !== parts.length) continue;
    if (parts.some((part, at) => part !== names[at] && !isParameter(at))) continue;
    const words = parts.flatMap((part, at) =>
      isParameter(at) && names[at] !== '{projectId}' ? [quoteShell(decodeURIComponent(part))] : [],
    );
    const name = quoteShell(project.value?.name ?? '');
    const isOfProject = template.includes('{projectId}');
    if (command.startsWith('project ')) return ['bsvc', command, ...(isOfProject ? [name] : [])].join(' ');
    const options = LISTS.has(command)
      ? shownOptions([...new URLSearchParams(path.split('?')[1] ?? queryOf(query))])
      : '';
    return ['bsvc', command, ...words, ...(isOfProject ? ['--project', name] : []), options].join(' ').trimEnd();
  }
  return null;
}

/** Names of secrets that must not appear on screen or in the shell's history. */
const SECRET = /password|secret|apikey/i;

function writeCurl({ method, path, query = {}, body, headers = {} }: Prepared): string {
  const base = new URL('..', document.baseURI).href.replace(/\/$/, '');
  const sent = { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers };
  const hide = (name: string, value: unknown): unknown =>
    typeof value === 'string' && SECRET.test(name) ? '…' : value;
  return [
    'curl',
    ...(method === 'GET' ? [] : ['-X', method]),
    '-H "Authorization: Bearer $TOKEN"',
    ...Object.entries(sent).map(([name, value]) => `-H ${quoteShell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : ['-d', quoteShell(JSON.stringify(body, hide))]),
    quoteShell(base + path + queryOf(query)),
  ].join(' ');
}
