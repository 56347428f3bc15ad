import { checkBucket, SOME_ORIGIN } from '../../../../src/features/files/bucket/check-bucket.js';
import { applyBucketCors, requireBucket } from '../../../../src/features/files/bucket/set-bucket.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { flag, list } from '../../../shell/command.js';
import { EXIT, UsageError } from '../../../view/exit.js';
import { presentBucketResult } from './present.js';

export default defineProjectCommand({
  details:
    '--check tries put, head, delete, a signed upload and the CORS rules, on objects of its own. --fix first replaces the CORS rules of the bucket, so that browsers can upload, and checks too.',
  examples: [
    'bsvc byok bucket show --project shop',
    'bsvc byok bucket show --project shop --check --origin https://shop.example',
    'bsvc byok bucket show --project shop --fix --origin https://shop.example',
  ],
  audited: ({ fix }) => fix,
  parameters: {
    check: flag('--check', 'try the bucket'),
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
