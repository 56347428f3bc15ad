import {
  arrayOf,
  envelope,
  flag,
  ID,
  jsonAnswer,
  jsonBody,
  listOf,
  naming,
  object,
  ok,
  TEXT,
  WHOLE,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { ADDED_COLLECTION, COLLECTION } from '../collections/describe-collection.js';
import { readEdit, readNewCollection, readNewName, readRlsBody } from './collection-routes.js';

const FIT_REPORT = object(
  { checked: WHOLE, misfits: WHOLE, examples: arrayOf(object({ id: ID, message: TEXT })) },
  'FitReport',
);

const BAD_SETTINGS = ['EMPTY_SCHEMA', 'VALIDATION_FAILED', 'INVALID_INDEX'];

/** As in collection-routes.ts. */
export const COLLECTION_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/collections',
  tag: 'Project collections',
  about: 'Which collections a project has: their fields, mode, row-level security and indexes.',
  path: { collection: naming('Name of the collection', 'COLLECTION_NOT_FOUND') },
  routes: {
    'GET /': {
      id: 'listCollections',
      summary: 'List collections',
      access: OPERATOR,
      answers: ok('All of them', listOf(COLLECTION)),
    },
    'POST /': {
      id: 'addCollection',
      summary: 'Register a collection',
      access: OWNER,
      body: jsonBody(readNewCollection.schema, {
        name: 'orders',
        fields: [{ name: 'number', type: 'Number', required: true, unique: true }],
        rls: { mode: 'private', ownerField: 'userId' },
      }),
      answers: {
        201: jsonAnswer('Registered', envelope(ADDED_COLLECTION)),
        200: jsonAnswer('With `ifNotExists`: it was there already', envelope(ADDED_COLLECTION)),
      },
      refuses: {
        400: [...BAD_SETTINGS, 'INVALID_NAME'],
        403: ['USERS_BLOCKED'],
        409: ['COLLECTION_EXISTS', 'COLLECTION_DROPPING'],
      },
    },
    'GET /:collection': {
      id: 'getCollection',
      summary: 'Get a collection',
      access: OPERATOR,
      answers: ok('The collection', COLLECTION),
    },
    'PATCH /:collection': {
      id: 'editCollection',
      summary: 'Change a collection',
      access: OWNER,
      query: { check: flag('Change nothing: tell which stored documents would not fit') },
      body: jsonBody(readEdit.schema, { addFields: [{ name: 'note', type: 'String' }] }),
      answers: ok('The collection, or with `check=true` the report', { anyOf: [COLLECTION, FIT_REPORT] }),
      refuses: {
        400: [...BAD_SETTINGS, 'USERS_CONTRACT', 'INVALID_QUERY'],
        404: ['FIELD_NOT_FOUND'],
        409: ['FIELD_EXISTS', 'DUPLICATE_VALUE', 'INDEX_REFUSED'],
      },
    },
    'PUT /:collection/rls': {
      id: 'setRls',
      summary: 'Switch row-level security on or off',
      access: OWNER,
      body: jsonBody(readRlsBody.schema, { mode: 'public-read', ownerField: 'userId' }),
      answers: ok('The collection', COLLECTION),
      refuses: { 400: ['USERS_CONTRACT'] },
    },
    'POST /:collection/rename': {
      id: 'renameCollection',
      summary: 'Rename a collection',
      access: OWNER,
      body: jsonBody(readNewName.schema, { name: 'purchases' }),
      answers: ok('The collection', COLLECTION),
      refuses: { 400: ['INVALID_NAME'], 403: ['USERS_BLOCKED'], 409: ['COLLECTION_EXISTS'] },
    },
    'DELETE /:collection': {
      id: 'dropCollection',
      summary: 'Drop a collection with all its documents',
      access: OWNER,
      answers: ok('Dropped', object({ id: ID, name: TEXT })),
      refuses: { 403: ['USERS_BLOCKED'] },
    },
  },
};
