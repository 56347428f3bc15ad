import { created, naming, ok, route, type RouteList } from '../../http/routes/route.js';
import { ANY_KEY, SECRET_KEY } from '../access/key-access.js';
import { callerOf, authenticateKey } from '../access/require-key.js';
import { readBlocked } from '../access/access-rules.js';
import { addCollection } from '../collections/add-collection.js';
import type { Collection } from '../collections/collection.js';
import { requireCollection, presentCollection } from '../collections/collection-store.js';
import { isServerOnly } from '../collections/rules/collection-rules.js';
import { USERS } from '../collections/users-collection.js';
import { DECLARATION_SCHEMA } from '../collections/schema/collection-declaration.js';
import {
  COLLECTION,
  SCHEMA_OF_COLLECTION,
  withFieldDefs,
  presentModel,
} from '../collections/schema/describe-collection.js';

/** Of hidden fields a publishable key learns nothing. */
function withoutHiddenFields(collection: Collection): Collection {
  return { ...collection, fields: collection.fields.filter(({ hidden }) => !hidden) };
}

/** Schemas of collections, for tools: reading one with any key, registering a collection with the secret key. */
export const SCHEMA_ROUTES: RouteList = {
  prefix: '/api/schemas',
  tag: 'Schemas',
  rate: 'plain',
  keyIn: 'header',
  about: 'What collections are made of, for tools that work with a project’s key.',
  params: { collectionName: naming('Name of a registered collection', 'COLLECTION_NOT_FOUND') },
  guard: (app) => (ctx) => authenticateKey(app, ctx),
  routes: [
    route('GET /api/schemas/:collectionName', {
      id: 'getSchema',
      summary: 'Get the schema of a collection',
      access: ANY_KEY,
      answers: ok(SCHEMA_OF_COLLECTION, 'Schema found'),
      errors: { 403: ['READ_BLOCKED'] },
      async handle({ app, project, params, ctx }) {
        const { key } = callerOf(ctx);
        const stored = await requireCollection(app, project._id, params.collectionName);
        if (key.type !== 'secret' && stored.name !== USERS && isServerOnly(stored)) throw readBlocked(stored);
        const collection = key.type === 'secret' ? stored : withoutHiddenFields(stored);
        return { ...presentCollection(collection), collection: presentModel(collection) };
      },
    }),
    route('POST /api/schemas', {
      id: 'registerCollection',
      summary: 'Register a collection',
      access: SECRET_KEY,
      body: withFieldDefs(DECLARATION_SCHEMA),
      example: {
        name: 'posts',
        fields: [
          { name: 'title', type: 'String', required: true },
          { name: 'views', type: 'Number', default: 0 },
        ],
        access: 'public-read',
      },
      answers: created(COLLECTION, 'Collection created'),
      errors: {
        400: ['INVALID_RULES', 'EMPTY_SCHEMA', 'VALIDATION_FAILED', 'INVALID_NAME', 'INVALID_INDEX'],
        403: ['USERS_BLOCKED'],
        409: ['COLLECTION_EXISTS', 'COLLECTION_DROPPING'],
      },
      async handle({ app, project, body }) {
        return presentCollection((await addCollection(app, project, body)).collection);
      },
    }),
  ],
};
