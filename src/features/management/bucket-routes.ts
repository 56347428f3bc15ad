import { ok, route, say, type RouteList } from '../../http/routes/route.js';
import { anyOf, arrayOf, FLAG, MOMENT, NULL, object, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { checkBucket, SOME_ORIGIN } from '../files/bucket/check-bucket.js';
import {
  presentBucket,
  applyBucketCors,
  BUCKET_DEFAULTS,
  clearBucket,
  requireBucket,
  setBucket,
} from '../files/bucket/project-bucket.js';

const SETTING = text({ maxLength: 2048 });

const BUCKET = {
  title: 'Bucket',
  ...anyOf(
    object({
      bucket: TEXT,
      endpoint: orNull(TEXT),
      region: TEXT,
      accessKeyId: TEXT,
      secretAccessKey: oneOf('********'),
      publicUrl: orNull(TEXT),
      forcePathStyle: FLAG,
      setAt: MOMENT,
    }),
    object({ bucket: NULL }),
  ),
};
const CHECK = object({ name: TEXT, ok: FLAG, detail: TEXT, hint: orNull(TEXT) }, 'BucketCheck');

/** A project's own bucket, for operators (decisions.md 6). */
export const BUCKET_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/bucket',
  tag: 'Project bucket',
  rate: 'operator',
  about: 'A project’s own bucket for its files.',
  routes: [
    route('GET /api/projects/:projectId/bucket', {
      id: 'getBucket',
      command: 'byok bucket show',
      summary: 'Get the bucket, without its secret',
      access: PROJECT_OPERATOR,
      answers: ok(BUCKET, 'Bucket'),
      handle: ({ project }) => presentBucket(project),
    }),
    route('PUT /api/projects/:projectId/bucket', {
      id: 'setBucket',
      summary: 'Store new files in a bucket',
      description: 'Tests the bucket first, unless `verify` is false.',
      access: projectOwner('byok bucket set', { asksPassword: true }),
      body: object({
        bucket: SETTING,
        accessKeyId: SETTING,
        secretAccessKey: SETTING,
        'endpoint?': orNull(SETTING),
        'region?': SETTING,
        'publicUrl?': orNull(SETTING),
        'forcePathStyle?': FLAG,
        'verify?': FLAG,
      }),
      example: {
        bucket: 'shop-files',
        endpoint: 'https://ACCOUNT.r2.cloudflarestorage.com',
        region: 'auto',
        accessKeyId: 'KEY_ID',
        secretAccessKey: 'SECRET',
        publicUrl: 'https://files.shop.example',
      },
      answers: ok(BUCKET, 'New files go to the bucket'),
      errors: {
        400: ['INVALID_BUCKET', 'INVALID_URL', 'PRIVATE_ADDRESS', 'PORT_NOT_ALLOWED', 'BUCKET_UNUSABLE'],
        503: ['STORAGE_UNAVAILABLE'],
      },
      async handle({ app, project, body: { verify = true, ...access } }) {
        return presentBucket(await setBucket(app, project, { ...BUCKET_DEFAULTS, ...access }, verify));
      },
    }),
    route('DELETE /api/projects/:projectId/bucket', {
      id: 'clearBucket',
      summary: 'Store new files in the server’s storage',
      access: projectOwner('byok bucket clear'),
      answers: ok(BUCKET, 'New files go to the service’s own storage'),
      async handle({ app, project }) {
        return presentBucket(await clearBucket(app, project));
      },
    }),
    route('POST /api/projects/:projectId/bucket/check', {
      id: 'checkBucket',
      summary: 'Test the bucket',
      description: 'Writes, reads and deletes test objects, and checks whether pages of `origin` may upload.',
      access: projectOwner('byok bucket show'),
      body: object({ 'origin?': SETTING }),
      bodyIsOptional: true,
      example: { origin: 'https://shop.example' },
      answers: ok(object({ ok: FLAG, checks: arrayOf(CHECK) }), 'The bucket does what it should'),
      errors: { 404: ['NO_BUCKET'] },
      async handle({ app, project, body: { origin = SOME_ORIGIN } }) {
        const store = await requireBucket(app, project);
        const found = await checkBucket(store, origin);
        const checks = found.map(({ name, ok: passed, detail, hint }) => ({ name, ok: passed, detail, hint }));
        const passed = checks.every((check) => check.ok);
        return say({ ok: passed, checks }, passed ? 'The bucket does what it should' : 'Some tests failed');
      },
    }),
    route('PUT /api/projects/:projectId/bucket/cors', {
      id: 'setBucketCors',
      summary: 'Set the CORS rules of the bucket',
      description: 'Replaces the rules, so that browsers can upload. `*` means every origin.',
      access: projectOwner('byok bucket show'),
      command: 'byok bucket show --fix',
      body: object({ origins: arrayOf(SETTING, { minItems: 1, maxItems: 100 }) }),
      example: { origins: ['https://shop.example'] },
      answers: ok(object({ origins: arrayOf(TEXT) }), 'Pages of these origins may upload'),
      errors: { 400: ['INVALID_ORIGIN'], 404: ['NO_BUCKET'], 503: ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'] },
      async handle({ app, project, body: { origins } }) {
        await applyBucketCors(app, project, origins);
        return { origins };
      },
    }),
  ],
};
