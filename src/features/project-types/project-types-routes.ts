import { route, type RouteErrors, type RouteList } from '../../http/routes/route.js';
import { ANY_KEY } from '../access/key-access.js';
import { fileAnswers, servePreparedFile } from '../../http/routes/prepared-file.js';
import { TAG_QUERY } from '../reference/compact-document.js';
import type { ProjectFile } from './project-files.js';

/**
 * The collections of a project as types, as its own API document and as JSON Schema (client.md 1). A publishable key is
 * do not see protected fields.
 */
export function projectTypesRoutes(lists: () => readonly RouteList[]): readonly RouteList[] {
  const fileRoute = (
    file: ProjectFile,
    id: string,
    summary: string,
    answers: ReturnType<typeof fileAnswers>,
    more: { query?: typeof TAG_QUERY; errors?: RouteErrors } = {},
  ): RouteList => ({
    // Each its own prefix: they lie among the names of collections.
    prefix: `/api/schemas/${file}`,
    tag: 'Schemas',
    rate: 'plain',
    routes: [
      route(`GET /api/schemas/${file}`, {
        id,
        summary,
        description:
          'The output is the same for the same collections. With a publishable key, protected fields are omitted.',
        access: ANY_KEY,
        ...answers,
        ...more,
        async handle({ app, ctx, caller, project, query }) {
          const { readProjectFile } = await import('./project-files.js');
          const isPublic = caller.key.type !== 'secret';
          servePreparedFile(
            ctx,
            await readProjectFile(app, lists(), project, file, { isPublic }, query as { tag?: string }),
          );
          ctx.set('Cache-Control', 'private, no-cache');
          ctx.vary(['Origin', 'x-api-key']);
        },
      }),
    ],
  });
  return [
    fileRoute(
      'types.d.ts',
      'getProjectTypes',
      'The collections of the project as TypeScript types',
      fileAnswers('A declaration file; `createClient<Project>()` takes its `Project`', 'text/plain'),
    ),
    fileRoute(
      'openapi.json',
      'getProjectApiDocument',
      'The API of the collections of this project with their fields, or of one tag',
      fileAnswers('OpenAPI 3.1', 'application/json', {
        type: 'object',
        required: ['openapi', 'info', 'paths', 'components'],
      }),
      { query: TAG_QUERY, errors: { 404: ['NOT_FOUND'] } },
    ),
    fileRoute(
      'brief.md',
      'getProjectBrief',
      'The project on one page for a coding agent: collections, who may do what, calls that work',
      fileAnswers('Markdown of at most 4 kB', 'text/markdown'),
    ),
    fileRoute(
      'schema.json',
      'getProjectSchema',
      'The collections of the project as JSON Schema',
      fileAnswers('JSON Schema 2020-12', 'application/json', { type: 'object', required: ['$defs'] }),
    ),
  ];
}
