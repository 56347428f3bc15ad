import {
  envelope,
  jsonAnswer,
  jsonBody,
  parameter,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { ANY_KEY, SECRET_KEY } from '../access/describe-access.js';
import { readDeclaration } from '../collections/collection-declaration.js';
import { COLLECTION } from '../collections/describe-collection.js';

/** As in schema-routes.ts. */
export const SCHEMA_ROUTES: GroupDescription = {
  prefix: '/api/schemas',
  tag: 'Schemas',
  about: 'What collections are made of, for tools that work with a project’s key.',
  routes: {
    'GET /:collectionName': {
      id: 'getSchema',
      summary: 'Get the schema of a collection',
      access: ANY_KEY,
      path: { collectionName: parameter('Name of a registered collection', TEXT) },
      answers: { 200: jsonAnswer('The collection', envelope(COLLECTION)) },
      refuses: { 403: ['USERS_BLOCKED'], 404: ['COLLECTION_NOT_FOUND'] },
    },
    'POST /': {
      id: 'registerCollection',
      summary: 'Register a collection',
      access: SECRET_KEY,
      body: jsonBody(readDeclaration.schema, {
        name: 'posts',
        fields: [
          { name: 'title', type: 'String', required: true },
          { name: 'views', type: 'Number', default: 0 },
        ],
      }),
      answers: { 201: jsonAnswer('The collection', envelope(COLLECTION)) },
      refuses: {
        400: ['EMPTY_SCHEMA', 'VALIDATION_FAILED', 'INVALID_NAME', 'INVALID_INDEX'],
        403: ['USERS_BLOCKED'],
        409: ['COLLECTION_EXISTS', 'COLLECTION_DROPPING'],
      },
    },
  },
};
