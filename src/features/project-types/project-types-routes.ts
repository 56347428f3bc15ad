import { own, parameter, route, type RouteList } from '../../http/routes/route.js';
import { TEXT, type Schema } from '../../platform/schema/schema.js';
import { ANY_KEY } from '../access/key-access.js';
import { serveReferenceFile } from '../reference/reference-file.js';
import type { ProjectFile } from './project-files.js';

/**
 * The collections of a project as types, as its own API document and as JSON Schema (client.md 1). A publishable key is
 * told nothing of protected fields.
 */
export function projectTypesRoutes(lists: () => readonly RouteList[]): readonly RouteList[] {
  const fileRoute = (
    file: ProjectFile,
    id: string,
    summary: string,
    answer: { description: string; type: string; schema: Schema },
  ): RouteList => ({
    // Each its own prefix: they lie among the names of collections.
    prefix: `/api/schemas/${file}`,
    tag: 'Schemas',
    routes: [
      route({
        method: 'GET',
        path: `/api/schemas/${file}`,
        id,
        summary,
        description: 'The same collections give the same bytes. Of protected fields a publishable key is told nothing.',
        access: ANY_KEY,
        headers: { 'if-none-match': parameter('`ETag` of a copy', TEXT) },
        answers: [
          own(200, answer.description, { [answer.type]: answer.schema }, { ETag: 'Changes with the content' }),
          own(304, 'The copy is good'),
        ],
        async handle({ app, ctx, caller, project }) {
          const { readProjectFile } = await import('./project-files.js');
          const isPublic = caller.key.type !== 'secret';
          serveReferenceFile(ctx, await readProjectFile(app, lists(), project, file, { isPublic }));
          ctx.set('Cache-Control', 'private, no-cache');
          ctx.vary(['Origin', 'x-api-key']);
        },
      }),
    ],
  });
  return [
    fileRoute('types.d.ts', 'getProjectTypes', 'The collections of the project as TypeScript types', {
      description: 'A declaration file; `createClient<Project>()` takes its `Project`',
      type: 'text/plain',
      schema: TEXT,
    }),
    fileRoute('openapi.json', 'getProjectApiDocument', 'The API of this project, with the fields of its collections', {
      description: 'OpenAPI 3.1',
      type: 'application/json',
      schema: { type: 'object', required: ['openapi', 'info', 'paths', 'components'] },
    }),
    fileRoute('schema.json', 'getProjectSchema', 'The collections of the project as JSON Schema', {
      description: 'JSON Schema 2020-12',
      type: 'application/json',
      schema: { type: 'object', required: ['$defs'] },
    }),
  ];
}
