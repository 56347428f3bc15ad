import { own, parameter, PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { TEXT, type Schema } from '../../platform/schema/schema.js';
import { serveReferenceFile, type ReferenceFile } from './reference-file.js';
import type { ReferenceFiles } from './reference-files.js';

const DOCUMENT: Schema = { type: 'object', required: ['openapi', 'info', 'paths', 'components'] };

/**
 * The description of the whole API for programs, and the same as a page to read with what it needs. Open to everybody:
 * it says nothing that is not the same in every installation.
 */
export function referenceRoutes(lists: () => readonly RouteList[]): readonly RouteList[] {
  let files: Promise<ReferenceFiles> | undefined;
  /** Made when they are first asked for, once per process: starting the service does not wait for them. */
  const loadFiles = (): Promise<ReferenceFiles> =>
    (files ??= import('./reference-files.js').then(({ makeReferenceFiles }) => makeReferenceFiles(lists())));

  const fileRoute = (
    path: string,
    id: string,
    summary: string,
    answer: { description: string; type: string; schema?: Schema },
    choose: (files: ReferenceFiles) => ReferenceFile,
  ) =>
    route({
      method: 'GET',
      path,
      id,
      summary,
      access: PUBLIC,
      headers: { 'if-none-match': parameter('`ETag` of a copy', TEXT) },
      answers: [
        own(200, answer.description, { [answer.type]: answer.schema ?? TEXT }, { ETag: 'Changes with the content' }),
        own(304, 'The copy is good'),
      ],
      async handle({ ctx }) {
        serveReferenceFile(ctx, choose(await loadFiles()));
      },
    });

  return [
    {
      prefix: '/api/openapi.json',
      tag: 'Service',
      routes: [
        fileRoute(
          '/api/openapi.json',
          'getApiDocument',
          'This document',
          { description: 'OpenAPI 3.1', type: 'application/json', schema: DOCUMENT },
          ({ document }) => document,
        ),
      ],
    },
    {
      prefix: '/api/docs',
      tag: 'Service',
      routes: [
        fileRoute(
          '/api/docs',
          'getDocsPage',
          'This document as a page to read',
          { description: 'The page', type: 'text/html' },
          ({ page }) => page,
        ),
        fileRoute(
          '/api/docs/page.css',
          'getDocsStyle',
          'How the page looks',
          { description: 'A style sheet', type: 'text/css' },
          ({ style }) => style,
        ),
        fileRoute(
          '/api/docs/page.js',
          'getDocsScript',
          'The page’s search',
          { description: 'A script', type: 'text/javascript' },
          ({ script }) => script,
        ),
      ],
    },
  ];
}
