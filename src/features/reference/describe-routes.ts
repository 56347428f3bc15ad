import {
  jsonAnswer,
  parameter,
  PUBLIC,
  TEXT,
  type Answer,
  type GroupDescription,
} from '../../http/route-description.js';

const TAG = { tag: 'Service', about: 'How the service is, and what describes it.' };
const CONDITION = { 'if-none-match': parameter('`ETag` of a copy', TEXT) };
const UNCHANGED: Answer = { description: 'The copy is good' };

/** As apiDocumentRoutes in routes.ts. */
export const DOCUMENT_FILE_ROUTES: GroupDescription = {
  prefix: '/api/openapi.json',
  ...TAG,
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
