import {
  created,
  FLAG,
  ID,
  jsonBody,
  listOf,
  MOMENT,
  naming,
  object,
  ok,
  oneOf,
  orNull,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { KEY_TYPES } from '../projects/project.js';
import { readNewKey, readRotation } from './key-routes.js';

/** What presentKey answers. */
const KEY = object(
  {
    id: ID,
    type: oneOf(...KEY_TYPES),
    last4: TEXT,
    createdAt: MOMENT,
    expiresAt: orNull(MOMENT),
    revokedAt: orNull(MOMENT),
    live: FLAG,
  },
  'Key',
);
const NEW_KEY = object(
  { key: KEY, value: { type: 'string', pattern: '^(pk|sk)_live_', description: 'Shown only now.' } },
  'CreatedKey',
);

/** As in key-routes.ts. */
export const KEY_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/keys',
  tag: 'Project keys',
  about: 'The API keys of a project.',
  path: { keyId: naming('Id of the key', 'KEY_NOT_FOUND') },
  routes: {
    'GET /': {
      id: 'listKeys',
      summary: 'List keys, ended ones too',
      access: OPERATOR,
      answers: ok('All of them, without their values', listOf(KEY)),
    },
    'POST /': {
      id: 'createKey',
      summary: 'Create a key',
      access: OWNER,
      body: jsonBody(readNewKey.schema, { type: 'secret' }),
      answers: created('The key with its value', NEW_KEY),
      refuses: { 409: ['KEY_LIMIT'] },
    },
    'POST /rotate': {
      id: 'rotateKey',
      summary: 'Create a key and let the older ones of its type end',
      access: OWNER,
      body: jsonBody(readRotation.schema, { type: 'secret', grace: '24h' }),
      answers: created('The key with its value', NEW_KEY),
      refuses: { 409: ['KEY_LIMIT'] },
    },
    'DELETE /:keyId': { id: 'revokeKey', summary: 'Revoke a key at once', access: OWNER, answers: ok('The key', KEY) },
  },
};
