import { publicPath } from '../../config/public-path.js';
import { PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { arrayOf, claimed, object, TEXT, type Schema } from '../../platform/schema/schema.js';
import { fileAnswers, servePreparedFile, type PreparedFile } from '../../http/routes/prepared-file.js';
import { TAG_QUERY } from './compact-document.js';
import { MARKDOWN_ROUTE } from './machine-routes.js';
import type { ReferenceFiles } from './reference-files.js';

const DOCUMENT: Schema = claimed({ type: 'object', required: ['openapi', 'info', 'paths', 'components'] });
const SECTIONS = arrayOf(object({ address: TEXT, guide: TEXT, heading: TEXT, text: TEXT, 'words?': arrayOf(TEXT) }));

interface FileRoute {
  path: `/${string}`;
  id: string;
  summary: string;
  answers: ReturnType<typeof fileAnswers>;
  choose: (files: ReferenceFiles) => PreparedFile;
}

const DOCS: readonly FileRoute[] = [
  {
    path: '/api/docs',
    id: 'getDocsPage',
    summary: 'API reference for applications',
    answers: fileAnswers('The page', 'text/html'),
    choose: ({ pages }) => pages.applications,
  },
  {
    path: '/api/docs/operators',
    id: 'getOperatorsDocsPage',
    summary: 'API reference for operators',
    answers: fileAnswers('The page', 'text/html'),
    choose: ({ pages }) => pages.operators,
  },
  {
    path: '/api/docs/page.css',
    id: 'getDocsStyle',
    summary: 'Stylesheet of the pages',
    answers: fileAnswers('A style sheet', 'text/css'),
    choose: ({ style }) => style,
  },
  {
    path: '/api/docs/page.js',
    id: 'getDocsScript',
    summary: 'Search script of the pages',
    answers: fileAnswers('A script', 'text/javascript'),
    choose: ({ script }) => script,
  },
  {
    path: '/api/docs/guides.json',
    id: 'getGuideSections',
    summary: 'Search index of the guides',
    answers: fileAnswers('The sections', 'application/json', SECTIONS),
    choose: ({ sections }) => sections,
  },
];

/**
 * The description of the whole API for programs, and the same as pages to read with what they need. Public:
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
  const fileRoute = ({ path, id, summary, answers, choose }: FileRoute) =>
    route(`GET ${path}`, {
      id,
      summary,
      access: PUBLIC,
      ...answers,
      async handle({ app, ctx }) {
        servePreparedFile(ctx, choose(await loadFiles(publicPath(app.config))));
      },
    });
  const apiDocument = route('GET /api/openapi.json', {
    id: 'getApiDocument',
    summary: 'Get this document, or the operations of one tag',
    query: TAG_QUERY,
    access: PUBLIC,
    ...fileAnswers('OpenAPI 3.1', 'application/json', DOCUMENT),
    errors: { 404: ['NOT_FOUND'] },
    async handle({ app, ctx, query: { tag } }) {
      const { document, ofTag } = await loadFiles(publicPath(app.config));
      servePreparedFile(ctx, tag === undefined ? document : await ofTag(tag));
    },
  });
  return [
    { prefix: '/api/openapi.json', tag: 'Service', rate: 'page', routes: [apiDocument] },
    { prefix: '/api/docs', tag: 'Service', rate: 'page', routes: [...DOCS.map(fileRoute), MARKDOWN_ROUTE] },
  ];
}
