import {
  arrayOf,
  flag,
  FLAG,
  jsonBody,
  object,
  ok,
  oneOf,
  TEXT,
  type GroupDescription,
  type Schema,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { readSchemaBody } from './schema-routes.js';

const SCHEMA_FILE: Schema = { title: 'ProjectSchema', ...readSchemaBody.schema };
const CHANGE = object(
  { action: oneOf('add', 'change', 'drop'), kind: { const: 'collection' }, name: TEXT, 'what?': arrayOf(TEXT) },
  'SchemaChange',
);

/** As in schema-routes.ts. */
export const PROJECT_SCHEMA_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/schema',
  tag: 'Project collections',
  routes: {
    'GET /': {
      id: 'exportSchema',
      summary: 'Get all collections as one declaration',
      access: OPERATOR,
      answers: ok('What PUT takes, for this or another project', SCHEMA_FILE),
    },
    'PUT /': {
      id: 'applySchema',
      summary: 'Make the collections as declared',
      description: 'A second time changes nothing. Fields that are left out stop being declared; stored values stay.',
      access: OWNER,
      query: {
        dryRun: flag('Change nothing: tell what would be changed'),
        prune: flag('Drop collections that are not named, with all their documents'),
      },
      body: jsonBody(SCHEMA_FILE, {
        format: 'bsvc-schema/1',
        collections: [{ name: 'posts', fields: [{ name: 'title', type: 'String', required: true }] }],
      }),
      answers: ok('What was or would be changed', object({ changes: arrayOf(CHANGE), applied: FLAG })),
      refuses: {
        400: [
          'EMPTY_SCHEMA',
          'VALIDATION_FAILED',
          'INVALID_INDEX',
          'INVALID_NAME',
          'INVALID_FILE',
          'USERS_CONTRACT',
          'INVALID_QUERY',
        ],
        403: ['USERS_BLOCKED'],
        409: ['DUPLICATE_VALUE', 'INDEX_REFUSED', 'COLLECTION_DROPPING'],
      },
    },
  },
};
