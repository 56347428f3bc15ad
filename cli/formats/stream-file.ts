import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { conflict } from '../../src/errors.js';
import type { Context } from '../shell/context.js';
import type { Result } from '../view/output.js';
import { resolveOutput } from '../shell/resolve-output.js';
import { replaceFile } from './replace-file.js';

/** Text that a command makes, and the value that `--json` shows for it. */
export interface MadeFile {
  text: string;
  json: unknown;
  /** Name of the project that it describes. */
  of: string;
}

/** The system's default for files without secrets. */
const FOR_ALL = 0o666;

/** Writes a file that belongs among sources, or prints it where no `--out` names one. */
export async function giveFile(context: Context, out: string | undefined, made: MadeFile): Promise<Result> {
  const { text, json, of } = made;
  if (out === undefined) return { json, quiet: text, text: () => text };
  const path = await resolveOutput(context, out);
  const present = await stat(path).catch(() => null);
  await replaceFile(path, text, present ? present.mode & 0o777 : FOR_ALL);
  return { json: { file: out }, quiet: out, text: () => `Wrote ${out} from the collections of ${of}.` };
}

/** 409 FILE_STALE when the file is not what would be written; `command` renews it. */
export async function requireFresh(context: Context, out: string, text: string, command: string): Promise<Result> {
  const there = await readFile(resolve(context.io.cwd, out), 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  });
  if (there === null) throw conflict('FILE_STALE', `There is no ${out} yet. Write it: ${command}`);
  if (there !== text) {
    throw conflict('FILE_STALE', `${out} is not what the collections of the project are now. Renew it: ${command}`);
  }
  return { json: { file: out, fresh: true }, quiet: out, text: () => `${out} is up to date.` };
}
