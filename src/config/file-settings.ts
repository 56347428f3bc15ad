import { defaulted, optional } from './setting.js';
import { asIs, httpUrl, parseBytes, trueOrFalse } from './setting-readers.js';

/** Files, the bucket, and the addresses that projects may name. */
export const FILE_SETTINGS = {
  maxFileBytes: defaulted(
    'BSVC_MAX_FILE',
    parseBytes,
    10 * 1024 * 1024,
    'largest file in the service’s own storage; a project’s own bucket has no such cap',
    { defaultText: '10mb' },
  ),
  s3Endpoint: optional('BSVC_S3_ENDPOINT', httpUrl, 'address of the S3 service', {
    defaultText: 'AWS, when a bucket is named',
  }),
  s3Region: defaulted('BSVC_S3_REGION', asIs, 'us-east-1', 'region of the bucket (`auto` for R2)'),
  s3Bucket: optional('BSVC_S3_BUCKET', asIs, 'bucket for uploads; none means files in the data directory', {
    defaultText: 'local files',
  }),
  s3AccessKeyId: optional('BSVC_S3_ACCESS_KEY_ID', asIs, 'access key id for the bucket'),
  s3SecretAccessKey: optional('BSVC_S3_SECRET_ACCESS_KEY', asIs, 'secret access key for the bucket', { secret: true }),
  s3PublicUrl: optional(
    'BSVC_S3_PUBLIC_URL',
    httpUrl,
    'address under which the bucket’s objects are public; none means that replies carry no url',
  ),
  s3ForcePathStyle: defaulted(
    'BSVC_S3_FORCE_PATH_STYLE',
    trueOrFalse,
    false,
    'put the bucket’s name into the path instead of the host (MinIO and the like)',
  ),
  webhookAllowPrivate: defaulted(
    'BSVC_WEBHOOK_ALLOW_PRIVATE',
    trueOrFalse,
    false,
    'allow private addresses and plain http as targets that projects name: webhooks and buckets, and sign-in issuers named by operators of some projects (development)',
  ),
};
