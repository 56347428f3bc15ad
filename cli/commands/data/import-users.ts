import { resolve } from 'node:path';
import { readTextFile } from '../../../src/text.js';
import { importUsers } from '../../../src/features/users/imports/import-users.js';
import { chooseProject } from '../../ask/choose.js';
import { readForeignUser, USER_SOURCES, type UserSource } from '../../formats/foreign/foreign-user.js';
import { openPocketBase } from '../../formats/foreign/pocketbase.js';
import { storeInBatches, type ForeignEntry } from '../../formats/foreign/store-in-batches.js';
import { readJson, readNdjson } from '../../formats/json.js';
import { findFormat } from '../../formats/entries.js';
import { measureSource, openSource } from '../../formats/open-source.js';
import type { FirebaseScryptParameters } from '../../../src/platform/secrets/firebase-scrypt.js';
import type { Context } from '../../shell/context.js';
import { UsageError } from '../../view/exit.js';
import type { Result } from '../../view/output.js';
import { refusedLines, SHOWN_REJECTS } from './present-import.js';

/** `data import users --from`: passwords are taken over as they are, and users who are there already stay. */
export async function importForeignUsers(
  context: Context,
  {
    file,
    from,
    hashConfig,
    source,
    project: named,
    dryRun,
  }: {
    file: string;
    from: string;
    hashConfig?: string;
    source?: string;
    project?: string;
    dryRun: boolean;
  },
): Promise<Result> {
  if (!isUserSource(from)) throw new UsageError(`Users come from ${USER_SOURCES.join(', ')}, not from ${from}.`);
  const { app, project } = await chooseProject(context, named);
  const scrypt = hashConfig === undefined ? null : await openHashConfig(context, hashConfig);
  const undeclared = new Set<string>();
  const lost = new Map<string, number>();
  const { report, broken } = await storeInBatches(
    context,
    'Importing users',
    readValues(context, { file, from, source }),
    async (values) => {
      const read = values.map((value) => readOrExplain(() => readForeignUser(from, value, scrypt)));
      const users = read.flatMap((each, index) => ('problem' in each ? [] : [{ index, ...each }]));
      const outcome = await importUsers(
        app,
        project,
        users.map(({ user }) => user),
        { dryRun },
      );
      for (const name of outcome.undeclared) undeclared.add(name);
      for (const { lostPassword } of users) {
        if (lostPassword) lost.set(lostPassword, (lost.get(lostPassword) ?? 0) + 1);
      }
      const problems = read.flatMap((each, index) => ('problem' in each ? [{ index, message: each.problem }] : []));
      const rejected = outcome.rejected.map(({ index, message }) => ({ index: users[index]!.index, message }));
      return { stored: outcome.imported, present: outcome.present, rejected: [...problems, ...rejected] };
    },
  );
  const withoutPassword = [...lost].map(([reason, count]) => ({ reason, count }));
  const failure = broken ?? (report.rejectedCount > 0 ? refusedLines(report.rejectedCount) : undefined);
  return {
    json: { dryRun, ...report, withoutPassword, undeclared: [...undeclared] },
    quiet: report.stored,
    ...(failure && { failure }),
    text: (view) => {
      const head = [dryRun ? 'would be stored' : 'stored', 'already present', 'refused'];
      const lines = [view.table(head, [[report.stored, report.present, report.rejectedCount]])];
      for (const { reason, count } of withoutPassword) {
        lines.push(`${count} without their password (${reason}): they set a new one by a mailed code.`);
      }
      if (undeclared.size > 0) {
        lines.push(`Left out, for users does not declare them: ${[...undeclared].join(', ')}.`);
      }
      const refused = report.rejected.slice(0, SHOWN_REJECTS).map(({ line, message }) => `  ${line}: ${message}`);
      if (refused.length > 0) lines.push('Refused:', ...refused);
      if (report.rejectedCount > SHOWN_REJECTS) lines.push('  … (--json lists up to 1000)');
      if (dryRun) lines.push('Nothing was stored (--dry-run); addresses were not compared.');
      return lines.join('\n');
    },
  };
}

const isUserSource = (name: string): name is UserSource => (USER_SOURCES as readonly string[]).includes(name);

async function openHashConfig(context: Context, path: string): Promise<FirebaseScryptParameters> {
  await measureSource(context, path);
  return readHashConfig(path, await readTextFile(resolve(context.io.cwd, path), path));
}

type Read<T> = T | { problem: string };

function readOrExplain<T extends object>(read: () => T): Read<T> {
  try {
    return read();
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

async function* readValues(
  context: Context,
  { file, from, source = 'users' }: { file: string; from: UserSource; source: string | undefined },
): AsyncGenerator<ForeignEntry<unknown>> {
  if (from !== 'pocketbase') {
    await measureSource(context, file);
    const chunks = openSource(context, file);
    const list = { name: source, fields: new Set<string>() };
    const isJson = from === 'firebase' || findFormat(file) === 'json';
    for await (const entry of isJson ? readJson(chunks, list) : readNdjson(chunks, list)) {
      if (!('note' in entry)) yield entry;
    }
    return;
  }
  const pocketBase = await openPocketBase(resolve(context.io.cwd, file));
  try {
    if (!pocketBase.userCollections.includes(source)) {
      const known = pocketBase.userCollections.join(', ') || 'none';
      throw new UsageError(`The file has no collection of users "${source}". It has: ${known}.`);
    }
    let line = 0;
    for (const value of pocketBase.users(source)) yield { line: ++line, value };
  } finally {
    pocketBase.close();
  }
}

/**
 * The password hash parameters of a Firebase project, from the text that its console shows (`base64_signer_key: …,`) or
 * the same names as JSON.
 */
function readHashConfig(path: string, text: string): FirebaseScryptParameters {
  const parameter = (name: string): string => {
    const [, value] = new RegExp(`"?${name}"?\\s*[:=]\\s*"?([A-Za-z0-9+/=_-]+)"?`).exec(text) ?? [];
    if (value === undefined) {
      throw new UsageError(
        `--hash-config ${path}: there is no ${name}. Firebase shows it under Authentication, Users.`,
      );
    }
    return value;
  };
  const algorithm = parameter('algorithm').toUpperCase();
  if (algorithm !== 'SCRYPT') throw new UsageError(`--hash-config ${path}: the algorithm ${algorithm} is not SCRYPT.`);
  return {
    signerKey: Buffer.from(parameter('base64_signer_key'), 'base64'),
    saltSeparator: Buffer.from(parameter('base64_salt_separator'), 'base64'),
    rounds: Number(parameter('rounds')),
    memCost: Number(parameter('mem_cost')),
  };
}
