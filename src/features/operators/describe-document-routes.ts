import {
  arrayOf,
  flag,
  jsonBody,
  naming,
  object,
  ok,
  TEXT,
  WHOLE,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { DOCUMENT_ROUTES } from '../documents/describe-routes.js';
import { readImportBody } from './document-routes.js';

const REFUSES = { 403: ['USERS_BLOCKED'] };
const LIST = DOCUMENT_ROUTES.routes['GET /:collectionName']!;

const OUTCOME = object(
  { inserted: WHOLE, rejected: arrayOf(object({ index: WHOLE, message: TEXT })) },
  'ImportOutcome',
);

/** As in document-routes.ts. */
export const PROJECT_DOCUMENT_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/collections/:collection/documents',
  tag: 'Project documents',
  about: 'Documents of a project, as its operators see them.',
  path: { collection: naming('Name of the collection', 'COLLECTION_NOT_FOUND') },
  routes: {
    'GET /': {
      id: 'browseDocuments',
      summary: 'List documents, filtered, sorted, in pages',
      ...(LIST.description !== undefined && { description: LIST.description }),
      access: OPERATOR,
      ...(LIST.query && { query: LIST.query }),
      answers: LIST.answers,
      refuses: { ...LIST.refuses, ...REFUSES },
    },
    'GET /export': {
      id: 'exportDocuments',
      summary: 'Get all documents, one JSON object a line',
      description: 'In the order of their ids. An answer that breaks off before its end was not whole.',
      access: OPERATOR,
      query: { include_deleted: flag('Trashed documents too') },
      answers: { 200: { description: 'The documents', content: { 'application/x-ndjson': { type: 'string' } } } },
      refuses: { 400: ['INVALID_QUERY'], ...REFUSES },
    },
    'POST /import': {
      id: 'importDocuments',
      summary: 'Store documents of an export or from elsewhere',
      description:
        'Each stands for itself: what does not fit or is there already is reported, the others are stored. Ids, times and trash state of an export are kept.',
      access: OWNER,
      query: { dryRun: flag('Store nothing: check each by itself') },
      body: jsonBody(readImportBody.schema, { documents: [{ title: 'Hello', views: 0 }] }),
      answers: ok('What was stored and what was refused', OUTCOME),
      refuses: { 400: ['INVALID_QUERY'], ...REFUSES },
    },
  },
};
