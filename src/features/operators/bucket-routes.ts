import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { presentBucket } from '../files/project-bucket.js';
import { checkBucket, SOME_ORIGIN } from '../files/check-bucket.js';
import { applyBucketCors, clearBucket, requireBucket, setBucket } from '../files/set-bucket.js';

const PREFIX = '/api/projects/:projectId/bucket';

interface BucketBody {
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  endpoint?: string | null;
  region?: string;
  publicUrl?: string | null;
  forcePathStyle?: boolean;
  verify?: boolean;
}

const TEXT = { type: 'string', maxLength: 2048 };
const TEXT_OR_NULL = { type: ['string', 'null'], maxLength: 2048 };

export const readBucketBody = compileReader<BucketBody>({
  type: 'object',
  required: ['bucket', 'accessKeyId', 'secretAccessKey'],
  additionalProperties: false,
  properties: {
    bucket: TEXT,
    accessKeyId: TEXT,
    secretAccessKey: TEXT,
    endpoint: TEXT_OR_NULL,
    region: TEXT,
    publicUrl: TEXT_OR_NULL,
    forcePathStyle: { type: 'boolean' },
    verify: { type: 'boolean' },
  },
});

export const readOrigin = compileReader<{ origin?: string }>({
  type: 'object',
  additionalProperties: false,
  properties: { origin: TEXT },
});

export const readOrigins = compileReader<{ origins: string[] }>({
  type: 'object',
  required: ['origins'],
  additionalProperties: false,
  properties: { origins: { type: 'array', items: TEXT, minItems: 1, maxItems: 100 } },
});

/** A project's own bucket, for operators (decisions.md 6). It is tried before it is stored, unless `verify` is false. */
export function bucketRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);

  router.get('/', requireOperator(app), async (ctx) => {
    ctx.body = { success: true, data: presentBucket(await operatedProject(app, ctx)), message: 'Bucket' };
  });

  router.put('/', requireOwner(app, 'byok bucket set'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { verify = true, ...access } = readBucketBody(ctx.request.body);
    const changed = await setBucket(
      app,
      project,
      { endpoint: null, region: 'us-east-1', publicUrl: null, forcePathStyle: false, ...access },
      verify,
    );
    ctx.body = { success: true, data: presentBucket(changed), message: 'New files go to the bucket' };
  });

  router.delete('/', requireOwner(app, 'byok bucket clear'), async (ctx) => {
    const project = await clearBucket(app, await operatedProject(app, ctx));
    ctx.body = { success: true, data: presentBucket(project), message: 'New files go to the service’s own storage' };
  });

  router.post('/check', requireOwner(app, 'byok bucket check'), async (ctx) => {
    const store = await requireBucket(app, await operatedProject(app, ctx));
    const { origin = SOME_ORIGIN } = readOrigin(ctx.request.body ?? {});
    const checks = (await checkBucket(store, origin)).map(({ name, ok, detail, hint }) => ({ name, ok, detail, hint }));
    const data = { ok: checks.every(({ ok }) => ok), checks };
    ctx.body = { success: true, data, message: data.ok ? 'The bucket does what it should' : 'Some tests failed' };
  });

  router.put('/cors', requireOwner(app, 'byok bucket cors'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { origins } = readOrigins(ctx.request.body);
    await applyBucketCors(app, project, origins);
    ctx.body = { success: true, data: { origins }, message: 'Pages of these origins may upload' };
  });

  return { prefix: PREFIX, router };
}
