import { BUCKET_DEFAULTS, setBucket } from '../../../../src/features/files/bucket/set-bucket.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { defineCommand, flag, secret, option } from '../../../shell/command.js';
import { readSecret } from '../../../shell/read-secret.js';
import { presentBucketResult } from './present.js';

/** Stands for the service that needs no address. */
const AWS = 'AWS';

export default defineCommand({
  details:
    'New files are stored there, without size limit and quota. The bucket is checked first; the secret is stored encrypted.',
  examples: [
    'bsvc byok bucket set --project shop --bucket shop-files --endpoint https://ID.r2.cloudflarestorage.com --region auto \\\n  --access-key-id AKIA… --secret-access-key-env R2_SECRET --public-url https://files.shop.example',
    'bsvc byok bucket set --project shop --bucket shop-files --region eu-central-1 --access-key-id AKIA… --secret-access-key-stdin < secret.txt',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    bucket: option('--bucket <name>', 'name of the bucket'),
    endpoint: option('--endpoint <url>', 'URL of the S3 service (default: AWS)'),
    region: option('--region <region>', 'region of the bucket (default: us-east-1; R2: auto)'),
    accessKeyId: option('--access-key-id <id>', 'access key id'),
    secretAccessKey: secret('secret-access-key', 'secret access key'),
    publicUrl: option('--public-url <url>', 'public URL of the objects; without it, responses contain no url'),
    pathStyle: flag('--path-style', 'use path-style URLs (MinIO and others)'),
    noVerify: flag('--no-verify', 'store the settings without checking them'),
  },
  async run(context, input) {
    const bucket = input.bucket ?? (await context.ask.text('Name of the bucket:', 'No bucket: add --bucket <name>'));
    const endpoint =
      input.endpoint ??
      (input.bucket === undefined
        ? await context.ask.text('Address of the S3 service:', '', { default: AWS, check: () => true })
        : AWS);
    const accessKeyId =
      input.accessKeyId ?? (await context.ask.text('Access key id:', 'No access key id: add --access-key-id <id>'));
    const { app, project } = await chooseProject(context, input.project);
    const secretAccessKey = (await readSecret(context, input.secretAccessKey, 'Secret access key')).trim();
    const access = {
      endpoint: endpoint === AWS ? null : endpoint,
      region: input.region ?? BUCKET_DEFAULTS.region,
      bucket,
      accessKeyId,
      secretAccessKey,
      publicUrl: input.publicUrl ?? null,
      forcePathStyle: input.pathStyle,
    };
    return presentBucketResult(await setBucket(app, project, access, !input.noVerify));
  },
});
