import { created, jsonBody, naming, ok, type GroupDescription } from '../../http/routes/route-description.js';
import { ANY_KEY, SECRET_KEY } from '../access/describe-access.js';
import { readDeclaration } from '../collections/schema/collection-declaration.js';
import { COLLECTION } from '../collections/schema/describe-collection.js';

/** As in schema-routes.ts. */
export const SCHEMA_ROUTES: GroupDescription = {
  prefix: '/api/schemas',
  tag: 'Schemas',
  about: 'What collections are made of, for tools that work with a project’s key.',
  path: { collectionName: naming('Name of a registered collection', 'COLLECTION_NOT_FOUND') },
  routes: {
    'GET /:collectionName': {
      id: 'getSchema',
      summary: 'Get the schema of a collection',
      access: ANY_KEY,
      answers: ok('The collection', COLLECTION),
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
      answers: created('The collection', COLLECTION),
      refuses: {
        400: ['EMPTY_SCHEMA', 'VALIDATION_FAILED', 'INVALID_NAME', 'INVALID_INDEX'],
        403: ['USERS_BLOCKED'],
        409: ['COLLECTION_EXISTS', 'COLLECTION_DROPPING'],
      },
    },
  },
};
