import { publicPath } from '../../config/public-path.js';
import { PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { arrayOf, claimed, object, TEXT, type Schema } from '../../platform/schema/schema.js';
import { fileAnswers, servePreparedFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import type { ReferenceFiles } from './reference-files.js';

const DOCUMENT: Schema = claimed({ type: 'object', required: ['openapi', 'info', 'paths', 'components'] });
const SECTIONS = arrayOf(object({ address: TEXT, guide: TEXT, heading: TEXT, text: TEXT }));

/**
 * The description of the whole API for programs, and the same as a page to read with what it needs. Open to everybody:
 * it says nothing that is not the same in every installation.
 */
export function referenceRoutes(lists: () => readonly RouteList[]): readonly RouteList[] {
  const files = new Map<string, Promise<ReferenceFiles>>();
  /** Made when they are first asked for, once per process: starting the service does not wait for them. */
  const loadFiles = (base: string): Promise<ReferenceFiles> => {
    const made =
      files.get(base) ??
      import('./reference-files.js').then(({ makeReferenceFiles }) => makeReferenceFiles(lists(), base));
    files.set(base, made);
    return made;
  };

  const fileRoute = (
    path: `/${string}`,
    id: string,
    summary: string,
    answers: ReturnType<typeof fileAnswers>,
    choose: (files: ReferenceFiles) => PreparedFile,
  ) =>
    route(`GET ${path}`, {
      id,
      summary,
      access: PUBLIC,
      ...answers,
      async handle({ app, ctx }) {
        servePreparedFile(ctx, choose(await loadFiles(publicPath(app.config))));
      },
    });

  return [
    {
      prefix: '/api/openapi.json',
      tag: 'Service',
      rate: 'free',
      routes: [
        fileRoute(
          '/api/openapi.json',
          'getApiDocument',
          'This document',
          fileAnswers('OpenAPI 3.1', 'application/json', DOCUMENT),
          ({ document }) => document,
        ),
      ],
    },
    {
      prefix: '/api/docs',
      tag: 'Service',
      rate: 'free',
      routes: [
        fileRoute(
          '/api/docs',
          'getDocsPage',
          'This document as a page to read',
          fileAnswers('The page', 'text/html'),
          ({ page }) => page,
        ),
        fileRoute(
          '/api/docs/page.css',
          'getDocsStyle',
          'How the page looks',
          fileAnswers('A style sheet', 'text/css'),
          ({ style }) => style,
        ),
        fileRoute(
          '/api/docs/page.js',
          'getDocsScript',
          'The page’s search',
          fileAnswers('A script', 'text/javascript'),
          ({ script }) => script,
        ),
        fileRoute(
          '/api/docs/guides.json',
          'getGuideSections',
          'The text of the guides by heading, for a search',
          fileAnswers('The sections', 'application/json', SECTIONS),
          ({ sections }) => sections,
        ),
      ],
    },
  ];
}
