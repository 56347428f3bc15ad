import {
  checkMailKey,
  presentMailSettings,
  setMailSettings,
  verifyMailKey,
} from '../../src/features/mail/project-mail.js';
import type { Project } from '../../src/features/projects/project.js';
import { defineProjectCommand, chooseProject, projectOption } from '../ask/choose.js';
import { type SecretSource, flag, secret, defineCommand, list, option } from '../shell/command.js';
import { readSecret } from '../shell/read-secret.js';
import type { Result } from '../view/output.js';
import { SOME_ORIGIN, checkBucket } from '../../src/features/files/bucket/check-bucket.js';
import { presentBucket } from '../../src/features/files/bucket/project-bucket.js';
import {
  BUCKET_DEFAULTS,
  applyBucketCors,
  clearBucket,
  requireBucket,
  setBucket,
} from '../../src/features/files/bucket/project-bucket.js';
import { EXIT, UsageError } from '../view/exit.js';

/** A project's own mail account, secrets masked. */
function presentByok(project: Project): Result {
  const settings = presentMailSettings(project);
  return {
    json: settings,
    quiet: settings.providerApiKey ?? '',
    text: (view) =>
      view.table(
        ['setting', 'value'],
        [
          ['mail provider key', settings.providerApiKey ?? 'none: the service’s own provider sends'],
          ['default sender', settings.providerFromEmail ?? 'the server’s'],
          ['webhook secret', settings.webhookSecret ?? 'none'],
        ],
      ),
  };
}

const show = defineProjectCommand({
  examples: ['bsvc byok show --project shop'],
  run(context, { project }) {
    return presentByok(project);
  },
});

const set = defineProjectCommand({
  details: [
    'The key is checked with a live call and stored encrypted; it is not shown again.',
    'The webhook secret signs the events of this account, which then go to /api/mail/webhook?project=<id>.',
  ].join('\n'),
  examples: [
    'bsvc byok set --project shop --mail-key-stdin < key.txt',
    'bsvc byok set --project shop --mail-key-env RESEND_KEY --no-verify',
    'bsvc byok set --project shop --webhook-secret-env WEBHOOK_SECRET',
  ],
  audited: true,
  parameters: {
    mailKey: secret('mail-key', 'key of the project’s own mail provider account (re_…)'),
    webhookSecret: secret('webhook-secret', 'secret that signs the provider’s events (whsec_…)'),
    noVerify: flag('--no-verify', 'store the key without a live call'),
  },
  async run(context, { app, project, mailKey, webhookSecret: events, noVerify }) {
    const webhookSecret = isGiven(events) ? (await readSecret(context, events, 'Webhook secret')).trim() : undefined;
    if (webhookSecret !== undefined && !isGiven(mailKey)) {
      return presentByok(await setMailSettings(app, project, { webhookSecret }));
    }
    const providerApiKey = (await readSecret(context, mailKey, 'Mail provider key')).trim();
    checkMailKey(providerApiKey);
    if (!noVerify) await verifyMailKey(app, providerApiKey);
    return presentByok(
      await setMailSettings(app, project, { providerApiKey, ...(webhookSecret && { webhookSecret }) }),
    );
  },
});

const isGiven = ({ stdin, env }: SecretSource): boolean => stdin || env !== undefined;

const clear = defineProjectCommand({
  details: 'Also removes the secret of its events. Emails are sent by the server’s provider again.',
  examples: ['bsvc byok clear --project shop', 'bsvc byok clear --project shop --yes'],
  audited: true,
  destroys: ({ project }) => ({ what: `Forgets the mail provider’s key of ${project.name}.`, name: project.name }),
  async run(context, { app, project }) {
    return presentByok(await setMailSettings(app, project, { providerApiKey: null, webhookSecret: null }));
  },
});

/** A project's own bucket, the secret masked. */
function presentBucketResult(project: Project): Result {
  const bucket = presentBucket(project);
  return {
    json: bucket,
    quiet: bucket.bucket ?? '',
    text: (view) =>
      bucket.bucket === null
        ? 'No bucket of its own: files go to the service’s storage.'
        : view.table(
            ['setting', 'value'],
            [
              ['bucket', bucket.bucket],
              ['endpoint', bucket.endpoint ?? 'AWS'],
              ['region', bucket.region],
              ['access key id', bucket.accessKeyId],
              ['secret access key', bucket.secretAccessKey],
              ['public URL', bucket.publicUrl ?? 'none: replies carry no url'],
              ['path style', bucket.forcePathStyle ? 'yes' : 'no'],
            ],
          ),
  };
}

const showBucket = defineProjectCommand({
  details:
    '--check tests put, head, delete, a signed upload and the CORS rules with temporary objects. --fix replaces the CORS rules of the bucket first, so that browsers can upload.',
  examples: [
    'bsvc byok bucket show --project shop',
    'bsvc byok bucket show --project shop --check --origin https://shop.example',
    'bsvc byok bucket show --project shop --fix --origin https://shop.example',
  ],
  audited: ({ fix }) => fix,
  parameters: {
    check: flag('--check', 'test the bucket'),
    origins: list('--origin <origin>', 'origin of the pages that upload (repeatable, default: any)'),
    fix: flag('--fix', 'set the CORS rules of the bucket'),
  },
  async run(_context, { app, project, check: isChecked, origins, fix }) {
    if (!isChecked && !fix) {
      if (origins.length > 0) throw new UsageError('--origin goes with --check or --fix.');
      return presentBucketResult(project);
    }
    if (fix) await applyBucketCors(app, project, origins.length > 0 ? origins : ['*']);
    const checks = await checkBucket(await requireBucket(app, project), origins[0] ?? SOME_ORIGIN);
    for (const check of checks) {
      if (check.hint && check.name === 'cors') check.hint += ' "bsvc byok bucket show --fix" does so.';
    }
    const failed = checks.filter((check) => !check.ok);
    return {
      json: {
        ok: failed.length === 0,
        checks: checks.map(({ name, ok, detail, hint }) => ({ name, ok, detail, hint })),
      },
      quiet: failed.map((check) => check.name),
      text: (view) =>
        view.table(
          ['test', '', 'found'],
          checks.map(({ name, ok, detail, hint }) => [
            name,
            ok ? 'ok' : 'FAILED',
            hint ? `${detail}. ${hint}` : detail,
          ]),
          { prose: true },
        ),
      ...(failed.length > 0 && {
        failure: {
          exitCode: failed.some(({ away }) => away) ? EXIT.unreachable : EXIT.refused,
          code: 'BUCKET_UNUSABLE',
          message: `${failed.length} of ${checks.length} tests failed.`,
        },
      }),
    };
  },
});

/** Stands for the service that needs no address. */
const AWS = 'AWS';

const setOwnBucket = defineCommand({
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

const clearOwnBucket = defineProjectCommand({
  details: 'New files go to the server’s own storage again. Files in the bucket stay there and are no longer managed.',
  examples: ['bsvc byok bucket clear --project shop', 'bsvc byok bucket clear --project shop --yes'],
  audited: true,
  destroys: ({ project }) => ({ what: `Forgets the bucket of ${project.name} and its secret.`, name: project.name }),
  async run(context, { app, project }) {
    return presentBucketResult(await clearBucket(app, project));
  },
});

export default { set, show, clear };
export const bucketCommands = { set: setOwnBucket, show: showBucket, clear: clearOwnBucket };
