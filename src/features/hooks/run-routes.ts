import type { App } from '../../app.js';
import {
  JSON_TYPE,
  own,
  route,
  type Access,
  type RequestLine,
  type RouteContext,
  type RouteList,
} from '../../http/routes/route.js';
import { text } from '../../platform/schema/schema.js';
import type { Caller } from '../access/caller.js';
import { ANY_KEY_DESCRIPTION } from '../access/describe-access.js';
import { callerOf, requireAdmittedOrigin, authenticateKey } from '../access/require-key.js';
import { cacheRegion } from '../../platform/cache.js';
import type { Project } from '../projects/project.js';
import { findProject } from '../projects/project-store.js';
import { noAddress, runAddress } from './run-address.js';

const PREFIX = '/api/run';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const NAMED = cacheRegion<Project>('run-projects');
const ANYTHING = { [JSON_TYPE]: {}, '*/*': text({ contentMediaType: 'application/octet-stream' }) };
const BYTES = { '*/*': text({ contentMediaType: 'application/octet-stream' }) };

/** Of files, too: never sniffed, never a document with rights at the console's origin. */
const HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};

/** A caller with a key, or without one if the query names the project: the project's file decides what suffices. */
const KEY_OR_PROJECT: Access<{ project: Project; caller: Caller | null }> = {
  ...ANY_KEY_DESCRIPTION,
  note: 'Any live key of the project; none where the file says `public: true` and the query names the `project`.',
  admit: (app, ctx) =>
    ctx.get('x-api-key') === '' && typeof ctx.query.project === 'string'
      ? authenticateProject(app, ctx, ctx.query.project)
      : authenticateKey(app, ctx),
  give: (_app, ctx) => {
    const caller = callerOf(ctx) as Caller | undefined;
    return { caller: caller ?? null, project: caller?.project ?? (ctx.state.project as Project) };
  },
};

async function authenticateProject(app: App, ctx: RouteContext, named: string): Promise<void> {
  const project = named.length > 64 ? null : await app.cache.read(NAMED, named, () => findProject(app, named));
  if (!project) throw noAddress(pathOf(ctx));
  requireAdmittedOrigin(ctx, { project });
  const { project: _named, ...query } = ctx.query;
  ctx.query = query;
  ctx.state.project = project;
}

/** Addresses of a project's files (hooks.md 3). */
export const RUN_ROUTES: RouteList = {
  prefix: PREFIX,
  tag: 'Own code',
  rate: 'run',
  keyIn: 'header',
  about:
    'Addresses that a project’s own files answer, and single calls of your code at a moment, which are there until they succeed or have failed five times.',
  params: {
    address: {
      description: 'As a file of the project names it',
      schema: text({ minLength: 1 }),
      errors: { 404: ['RUN_NOT_FOUND'] },
    },
  },
  routes: METHODS.map((method) =>
    route(`${method} ${PREFIX}/*address` as RequestLine, {
      id: `run${method[0]}${method.slice(1).toLowerCase()}`,
      summary: `Have a handler of the project’s files answer ${method}`,
      description: 'Status, headers and body are what the handler returns.',
      access: KEY_OR_PROJECT,
      ...(method !== 'GET' && { ownBody: { content: BYTES, required: false, isRead: true } }),
      answers: { ...own(200, 'What the handler returns, with its status', ANYTHING), isAny: true },
      errors: { 400: ['INVALID_JSON', 'INVALID_BODY', 'HOOK_DEPTH'], 413: ['BODY_TOO_LARGE'], 503: ['HOOK_FAILED'] },
      async handle({ app, ctx, project, caller }) {
        const { status, headers, body } = await runAddress(app, ctx, { project, caller, name: pathOf(ctx) });
        ctx.set(HEADERS);
        for (const [name, value] of headers) ctx.set(name, value);
        ctx.status = status;
        ctx.body = status === 204 || status === 304 ? null : body;
      },
    }),
  ),
};

const pathOf = ({ path }: RouteContext): string => path.slice(PREFIX.length + 1);
