import {
  arrayOf,
  FLAG,
  jsonBody,
  MOMENT,
  object,
  ok,
  optional,
  orNull,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { readBucketBody, readOrigin, readOrigins } from './bucket-routes.js';

/** What presentBucket answers. */
const BUCKET = {
  title: 'Bucket',
  anyOf: [
    object({
      bucket: TEXT,
      endpoint: orNull(TEXT),
      region: TEXT,
      accessKeyId: TEXT,
      secretAccessKey: { const: '********' },
      publicUrl: orNull(TEXT),
      forcePathStyle: FLAG,
      setAt: MOMENT,
    }),
    object({ bucket: { type: 'null' } }),
  ],
};

const CHECK = object({ name: TEXT, ok: FLAG, detail: TEXT, hint: orNull(TEXT) }, 'BucketCheck');

/** As in bucket-routes.ts. */
export const BUCKET_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/bucket',
  tag: 'Project bucket',
  about: 'A project’s own bucket for its files.',
  routes: {
    'GET /': {
      id: 'getBucket',
      summary: 'Get the bucket',
      access: OPERATOR,
      answers: ok('The bucket, without its secret', BUCKET),
    },
    'PUT /': {
      id: 'setBucket',
      summary: 'Send new files to a bucket',
      description: 'The bucket is tried first, unless `verify` is false.',
      access: OWNER,
      body: jsonBody(readBucketBody.schema, {
        bucket: 'shop-files',
        endpoint: 'https://ACCOUNT.r2.cloudflarestorage.com',
        region: 'auto',
        accessKeyId: 'KEY_ID',
        secretAccessKey: 'SECRET',
        publicUrl: 'https://files.shop.example',
      }),
      answers: ok('The bucket', BUCKET),
      refuses: {
        400: ['INVALID_BUCKET', 'INVALID_URL', 'PRIVATE_ADDRESS', 'BUCKET_UNUSABLE'],
        503: ['STORAGE_UNAVAILABLE'],
      },
    },
    'DELETE /': {
      id: 'clearBucket',
      summary: 'Send new files to the service’s own storage again',
      access: OWNER,
      answers: ok('No bucket', BUCKET),
    },
    'POST /check': {
      id: 'checkBucket',
      summary: 'Try what uploads need of the bucket',
      description: 'Puts, looks up and deletes objects of its own, and asks whether pages of `origin` may upload.',
      access: OWNER,
      body: optional(jsonBody(readOrigin.schema, { origin: 'https://shop.example' })),
      answers: ok('What was found', object({ ok: FLAG, checks: arrayOf(CHECK) })),
      refuses: { 404: ['NO_BUCKET'] },
    },
    'PUT /cors': {
      id: 'setBucketCors',
      summary: 'Let browsers upload to the bucket',
      description: 'Replaces the CORS rules of the bucket; `*` stands for every origin.',
      access: OWNER,
      body: jsonBody(readOrigins.schema, { origins: ['https://shop.example'] }),
      answers: ok('Whose pages may upload', object({ origins: arrayOf(TEXT) })),
      refuses: { 400: ['INVALID_ORIGIN'], 404: ['NO_BUCKET'], 503: ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'] },
    },
  },
};
