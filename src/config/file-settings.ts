import { defaulted, optional } from './setting.js';
import { s3Url } from './s3-url.js';
import { parseBytes, trueOrFalse } from './setting-readers.js';

/** Files, the bucket, and the addresses that projects may name. */
export const FILE_SETTINGS = {
  maxFileBytes: defaulted(
    'BSVC_MAX_FILE',
    parseBytes,
    10 * 1024 * 1024,
    'maximum file size; unlimited in a project’s own bucket',
    { defaultText: '10mb' },
  ),
  s3: optional(
    'BSVC_S3_URL',
    s3Url,
    'bucket for uploads: `s3://key:secret@host/bucket?region=…`, without `key:secret@` it uses the role of this machine or container; without a bucket it is only the account for BSVC_BACKUP_TO',
    { secret: true, defaultText: 'local files' },
  ),
  webhookAllowPrivate: defaulted(
    'BSVC_WEBHOOK_ALLOW_PRIVATE',
    trueOrFalse,
    false,
    'development: allow private addresses and plain http for webhooks, buckets, and sign-in issuers that operators of some projects set',
  ),
};
