import type { CommandNode } from './shell/command.js';
import { COMMANDS } from './commands/index.js';
import { ROUTE_LISTS } from '../src/api.js';

/** Their commands take the last name of the path as an option or after other words, or no project. */
const LEFT_OUT = [
  'DELETE /api/projects/:projectId/users/:user/sessions/:session',
  'PATCH /api/projects/:projectId/collections/:collection/documents/:document',
  'DELETE /api/projects/:projectId/invites/:invite',
  'POST /api/admin/jobs/:jobId/retry',
  'PUT /api/projects/:projectId/schema',
  'POST /api/projects/:projectId/recount',
];

/**
 * The command that does what an operators' route does, by method and path as the API document writes it: the console
 * shows it beside the request. Without routes that no command stands for.
 */
export function listRouteCommands(): Record<string, string> {
  const known = new Set(listNames(COMMANDS));
  const routes = ROUTE_LISTS.flatMap(({ routes }) => routes).filter(
    ({ method, path }) => /^\/api\/(admin|projects)\b/.test(path) && !LEFT_OUT.includes(`${method} ${path}`),
  );
  return Object.fromEntries(
    routes.flatMap(({ method, path, command, access }) => {
      const name = command ?? access.action;
      return name !== undefined && known.has(name.replace(/ --.*/, ''))
        ? [[`${method} ${path.replace(/[:*](\w+)/g, '{$1}')}`, name]]
        : [];
    }),
  );
}

const listNames = (nodes: readonly CommandNode[], group = ''): string[] =>
  nodes.flatMap(({ name, commands = [] }) => [group + name, ...listNames(commands, `${group}${name} `)]);
