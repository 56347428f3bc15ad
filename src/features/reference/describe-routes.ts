import {
  jsonAnswer,
  parameter,
  PUBLIC,
  TEXT,
  type Answer,
  type GroupDescription,
} from '../../http/routes/route-description.js';

const CONDITION = { 'if-none-match': parameter('`ETag` of a copy', TEXT) };
const UNCHANGED: Answer = { description: 'The copy is good' };
const text = (description: string, type: string): Answer => ({
  description,
  content: { [type]: TEXT },
  headers: { ETag: 'Changes with the content' },
});

/** As apiDocumentRoutes in routes.ts. */
export const DOCUMENT_FILE_ROUTES: GroupDescription = {
  prefix: '/api/openapi.json',
  tag: 'Service',
  routes: {
    'GET /': {
      id: 'getApiDocument',
      summary: 'This document',
      access: PUBLIC,
      headers: CONDITION,
      answers: {
        200: jsonAnswer('OpenAPI 3.1', { type: 'object', required: ['openapi', 'info', 'paths', 'components'] }),
        304: UNCHANGED,
      },
    },
  },
};

/** As docsPageRoutes in routes.ts. */
export const PAGE_ROUTES: GroupDescription = {
  prefix: '/api/docs',
  tag: 'Service',
  routes: {
    'GET /': {
      id: 'getDocsPage',
      summary: 'This document as a page to read',
      access: PUBLIC,
      headers: CONDITION,
      answers: { 200: text('The page', 'text/html'), 304: UNCHANGED },
    },
    'GET /page.css': {
      id: 'getDocsStyle',
      summary: 'How the page looks',
      access: PUBLIC,
      headers: CONDITION,
      answers: { 200: text('A style sheet', 'text/css'), 304: UNCHANGED },
    },
    'GET /page.js': {
      id: 'getDocsScript',
      summary: 'The page’s search',
      access: PUBLIC,
      headers: CONDITION,
      answers: { 200: text('A script', 'text/javascript'), 304: UNCHANGED },
    },
  },
};
