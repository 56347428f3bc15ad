import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { presentBucket } from '../files/project-bucket.js';
import { clearBucket, setBucket } from '../files/set-bucket.js';

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

  return { prefix: PREFIX, router };
}
