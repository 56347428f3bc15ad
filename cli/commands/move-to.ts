import { join } from 'node:path';
import type { Config } from '../../src/config/config.js';
import { moveStore, type MoveReport } from '../../src/features/store-copies/move-store.js';
import { defineCommand, flag, optionalArgument, secret, type SecretSource } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { UsageError, refused } from '../view/exit.js';
import type { TextStyle } from '../view/output.js';
import { countOf } from '../view/present.js';
import { readSecret } from '../shell/read-secret.js';

export default defineCommand({
  details: [
    'Copies all collections with their indexes into the database in the path of the URI (default: bsvc), and compares every document. The embedded database does not change.',
    'The server can keep running, but later writes are not copied. Stop it and run the command again to copy them.',
    'If it is interrupted, run it again. Until it succeeds with no other process on the data, bsvc refuses to use the target database.',
    'Pass a URI with a password through --uri-env, --uri-stdin or the prompt. Local uploads stay in the data directory.',
  ].join('\n'),
  examples: [
    'bsvc move-to mongodb://127.0.0.1:27017 --dry-run',
    'bsvc move-to mongodb://127.0.0.1:27017',
    'bsvc move-to --uri-env NEW_MONGODB_URI --json',
  ],
  audited: ({ dryRun }) => !dryRun,
  parameters: {
    uri: optionalArgument('mongodb-uri', 'address of the MongoDB, without a password'),
    secretUri: secret('uri', 'address of the MongoDB'),
    dryRun: flag('--dry-run', 'only check and count'),
  },
  async run(context, { uri: given, secretUri, dryRun }) {
    const uri = await readUri(context, given, secretUri);
    const app = await context.app();
    const progress = await context.out.progress('Looking at both databases');
    const report = await moveStore(app, uri, {
      stop: context.stop,
      dryRun,
      onProgress: (text) => progress.update(text),
    }).finally(() => progress.stop());
    const next = nextSettings(app.config, given ?? '…');
    const json = { ...report, dryRun, ...(report.done && { next }) };
    const quiet = report.documents;
    if (dryRun) return { json, quiet, text: (view) => presentPlan(view, report) };
    return {
      json,
      quiet,
      text: () => presentMove(report, next),
      ...(!report.done && {
        failure: refused(
          'STILL_IN_USE',
          `Copied and verified, but the embedded database ${presentUse(report)}. Stop "bsvc serve" and "bsvc worker", then run this again: it copies what has changed.`,
        ),
      }),
    };
  },
});

async function readUri(context: Context, given: string | undefined, source: SecretSource): Promise<string> {
  if (given !== undefined && (source.stdin || source.env !== undefined)) {
    throw new UsageError('Give the address once: as an argument, or with --uri-stdin or --uri-env.');
  }
  const uri = given ?? (await readSecret(context, source, 'Address of the MongoDB (mongodb://…)'));
  if (!/^mongodb(\+srv)?:\/\/./.test(uri)) {
    throw new UsageError('The address must start with mongodb:// or mongodb+srv://.');
  }
  if (given !== undefined && /^[^/]*\/\/[^/]*:[^/]*@/.test(given)) {
    throw new UsageError(
      'An address with a password would be seen in the list of processes: put it into an environment variable and name that with --uri-env, or use --uri-stdin.',
    );
  }
  return uri;
}

/** The settings that the services need from now on, without the secrets themselves. */
function nextSettings(config: Config, uri: string): Record<string, string> {
  return {
    MONGODB_URI: uri,
    ...(config.secretKey === null
      ? { BSVC_SECRET_KEY_FILE: join(config.dataDir, 'secret.key') }
      : { BSVC_SECRET_KEY: '(as it is now)' }),
  };
}

function presentUse({ inUseBy }: MoveReport): string {
  if (inUseBy.length === 0) return 'was changed meanwhile';
  return `was open in other processes (${inUseBy.join(', ')})`;
}

function presentPlan(view: TextStyle, report: MoveReport): string {
  const rows = report.collections.map(({ name, documents, indexes }) => [name, documents, indexes]);
  return [
    view.table(['collection', 'documents', 'indexes'], rows),
    '',
    `${countOf(report.documents, 'document')} would be copied into the database ${report.database} there. Nothing was changed (--dry-run).`,
    ...(report.inUseBy.length > 0
      ? [`The database is open in other processes (${report.inUseBy.join(', ')}): stop them before the last run.`]
      : []),
  ].join('\n');
}

function presentMove(report: MoveReport, next: Record<string, string>): string {
  const counts = `${countOf(report.collections.length, 'collection')} with ${countOf(report.documents, 'document')} are there and verified; ${report.written} were written now, ${report.removed} removed.`;
  if (!report.done) return counts;
  const settings = Object.entries(next).map(([name, text]) => `  ${name}=${text}`);
  return [
    counts,
    '',
    'Set for every process from now on, and start it:',
    ...settings,
    ...(next.BSVC_SECRET_KEY_FILE
      ? ['The file’s contents may also be given as BSVC_SECRET_KEY: without them no stored secret opens any more.']
      : []),
    'Keep the data directory: it holds the embedded database as it was, and uploads that are kept locally.',
  ].join('\n');
}
