import type { App } from '../../app.js';
import { created, listOf, naming, ok, route, type RouteList, say, wholeList } from '../../http/routes/route.js';
import { FLAG, ID, MOMENT, object, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { parseDuration } from '../../config/setting-readers.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { createKey, revokeKey, rotateKey, type NewKey } from '../projects/manage-keys.js';
import { presentKey } from '../projects/project-store.js';
import { MAX_KEY_NAME, KEY_TYPES } from '../projects/project.js';

const TYPE = oneOf(...KEY_TYPES);
/** For how long the value that is replaced goes on working. */
export const GRACE = text({ pattern: '^\\d{1,6}(s|m|h|d)$' });
const DEFAULT_GRACE = '24h';

const KEY = object(
  {
    id: ID,
    type: TYPE,
    name: orNull(TEXT),
    last4: TEXT,
    createdAt: MOMENT,
    expiresAt: orNull(MOMENT),
    revokedAt: orNull(MOMENT),
    lastUsedAt: { ...orNull(MOMENT), description: 'Accurate to the minute.' },
    live: FLAG,
  },
  'Key',
);
const CREATED_KEY = object(
  { key: KEY, value: text({ pattern: '^(pk|sk)_live_', description: 'Shown only once.' }) },
  'CreatedKey',
);

/** API keys of a project, for operators. A value is answered once, when its key is made. */
export const KEY_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/keys',
  tag: 'Project keys',
  rate: 'operator',
  about: 'The API keys of a project.',
  params: { keyId: naming('Id of the key', 'KEY_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/keys', {
      id: 'listKeys',
      command: 'key list',
      summary: 'List keys, including expired ones',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(KEY), 'Keys'),
      handle({ app, project: { keys } }) {
        return wholeList(keys.map((key) => presentKey(key, app.clock.now())));
      },
    }),
    route('POST /api/projects/:projectId/keys', {
      id: 'createKey',
      summary: 'Create a key',
      access: projectOwner('key create', { asksPassword: ({ type }) => type === 'secret' }),
      body: object({
        type: TYPE,
        'name?': text({ minLength: 1, maxLength: MAX_KEY_NAME, description: 'A label.' }),
      }),
      example: { type: 'secret', name: 'nightly import' },
      answers: created(CREATED_KEY, 'Key created. Its value is shown only now.'),
      errors: { 400: ['INVALID_NAME'], 409: ['KEY_LIMIT'] },
      async handle({ app, project, body: { type, name } }) {
        return presentNew(app, await createKey(app, project, type, name));
      },
    }),
    route('POST /api/projects/:projectId/keys/rotate', {
      id: 'rotateKey',
      summary: 'Create a key and expire older ones of its type',
      access: projectOwner('key rotate', { asksPassword: true }),
      body: object({ type: TYPE, 'grace?': GRACE }),
      example: { type: 'secret', grace: '24h' },
      answers: created(CREATED_KEY, 'Key created. Its value is shown only now.'),
      errors: { 409: ['KEY_LIMIT'] },
      async handle({ app, project, body: { type, grace = DEFAULT_GRACE } }) {
        const data = presentNew(app, await rotateKey(app, project, type, parseDuration(grace)));
        return say(data, `Key created; the older ones of its type end in ${grace}. Its value is shown only now.`);
      },
    }),
    route('DELETE /api/projects/:projectId/keys/:keyId', {
      id: 'revokeKey',
      summary: 'Revoke a key immediately',
      access: projectOwner('key revoke'),
      answers: ok(KEY, 'Key revoked'),
      async handle({ app, project, params }) {
        return presentKey(await revokeKey(app, project, params.keyId.toLowerCase()), app.clock.now());
      },
    }),
  ],
};

function presentNew(app: App, { key, value }: NewKey) {
  return { key: presentKey(key, app.clock.now()), value };
}
