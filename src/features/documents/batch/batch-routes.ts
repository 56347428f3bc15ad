import type { App } from '../../../app.js';
import { IDEMPOTENCY_KEY, readIdempotencyKey } from '../../../http/routes/idempotency-key.js';
import { ok, route, type Access, type RouteList } from '../../../http/routes/route.js';
import { compileCheck } from '../../../platform/schema/check-schema.js';
import { anyOf, arrayOf, ID, NULL, object, OBJECT, oneOf, TEXT, text } from '../../../platform/schema/schema.js';
import { type Caller, tenantOfCaller } from '../../access/caller.js';
import { WRITES_DOCUMENTS_DESCRIPTION } from '../../access/describe-access.js';
import { onBehalfOf } from '../../access/key-access.js';
import { callerOf, authenticateKey } from '../../access/require-key.js';
import { DOCUMENT, NO_ROOM } from '../reply/present-document.js';
import { runBatch } from './run-batch.js';

const MAX_OPERATIONS = 100;

const OPERATION = object(
  {
    op: oneOf('insert', 'update', 'upsert', 'remove', 'recover'),
    collection: text({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$' }),
    'id?': TEXT,
    'body?': OBJECT,
    'ifMatch?': TEXT,
    'by?': arrayOf(TEXT, { minItems: 1, maxItems: 10 }),
  },
  'BatchOperation',
);

const BATCH = object({ operations: arrayOf(OPERATION, { minItems: 1, maxItems: MAX_OPERATIONS }) });

/** The body of a batch, `{operations}`; 400 VALIDATION_FAILED for anything else. */
export const readOperations = compileCheck(BATCH);

const WRITES_ANYWHERE: Access<{ app: App; caller: Caller }> = {
  ...WRITES_DOCUMENTS_DESCRIPTION,
  admit: authenticateKey,
  give: async (app, ctx) => {
    const caller = callerOf(ctx);
    await app.replies.room(tenantOfCaller(caller));
    return { app: onBehalfOf(app, caller), caller };
  },
};

/** Several writes as one (writes.md 4). */
export const BATCH_ROUTES: RouteList = {
  prefix: '/api/batch',
  tag: 'Documents',
  rate: 'plain',
  keyIn: 'header',
  routes: [
    route('POST /api/batch', {
      id: 'runBatch',
      bodySize: 'many',
      summary: `Carry out up to ${MAX_OPERATIONS} operations, all or none`,
      description:
        'In their order, each seeing those before it. A new document may bring its own `_id`, which later operations can name. `ifMatch` is the ETag of the version that is meant. The first refusal refuses all; `details` name the operation.',
      access: WRITES_ANYWHERE,
      headers: IDEMPOTENCY_KEY,
      body: BATCH,
      example: { operations: [{ op: 'insert', collection: 'posts', body: { title: 'Hello' } }] },
      answers: ok(
        object({ results: arrayOf(object({ id: ID, document: anyOf(DOCUMENT, NULL) })) }),
        'All operations are carried out',
      ),
      errors: {
        400: [
          'VALIDATION_FAILED',
          'CONFLICTING_PATHS',
          'INVALID_IF_MATCH',
          'INVALID_IDEMPOTENCY_KEY',
          'INVALID_ID',
          'INVALID_KEY',
          'REFERENCE_MISSING',
          'TOO_MANY_REFERENCES',
        ],
        403: ['OWNER_MISMATCH', 'OWNER_IMMUTABLE', 'QUOTA_EXCEEDED', 'USERS_BLOCKED'],
        404: ['DOCUMENT_NOT_FOUND', 'COLLECTION_NOT_FOUND'],
        409: ['DUPLICATE_VALUE', 'DOCUMENT_CHANGING', 'REFERENCE_MISSING', 'DOCUMENT_REFERRED_TO'],
        412: ['CHANGED_MEANWHILE'],
        413: ['DOCUMENT_TOO_LARGE'],
        422: ['IDEMPOTENCY_KEY_REUSED'],
        ...NO_ROOM,
      },
      async handle({ app, ctx, caller, body: { operations } }) {
        return { results: await runBatch(app, caller, operations, readIdempotencyKey(ctx)) };
      },
    }),
  ],
};
