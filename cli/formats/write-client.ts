import { readFile, stat, readdir } from 'node:fs/promises';
import { resolve, join } from 'node:path';
import { conflict, missing } from '../../src/errors.js';
import { DIRECTORY_FOR_ALL, makeDirectory } from '../../src/platform/durable-files.js';
import type { Context } from '../shell/context.js';
import type { Result } from '../view/output.js';
import { resolveOutput, replaceFile, FOR_ALL } from './output-file.js';
import { PACKAGE_ROOT } from '../../src/package.js';
import { UsageError } from '../view/exit.js';

/** Text that a command makes, and the value that `--json` shows for it. */
interface MadeFile {
  text: string;
  json: unknown;
  /** Name of the project that it describes. */
  of: string;
}

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

const BUILT = join(PACKAGE_ROOT, 'dist', 'client');
/** Writes the package of the client into a directory, or with `check` compares it; another package is left alone. */
export async function writeClient(
  { io }: Context,
  { out, check }: { out: string | undefined; check: boolean },
): Promise<Result> {
  if (out === undefined) throw new UsageError('generate client needs --out: the directory of the package.');
  const directory = resolve(io.cwd, out);
  const files = await readBuilt();
  if (check) {
    const renew = `bsvc generate client --out ${out}`;
    for (const [name, text] of files) {
      const there = await readIfThere(join(directory, name));
      if (there === null) throw conflict('FILE_STALE', `There is no ${join(out, name)} yet. Write it: ${renew}`);
      if (there !== text) {
        throw conflict('FILE_STALE', `${join(out, name)} is not the client of this version. Renew it: ${renew}`);
      }
    }
    return { json: { directory: out, fresh: true }, quiet: out, text: () => `${out} is up to date.` };
  }
  await rejectOther(directory, out);
  await makeDirectory(directory, DIRECTORY_FOR_ALL);
  for (const [name, text] of files) await replaceFile(join(directory, name), text, FOR_ALL);
  const names = files.map(([name]) => name);
  return {
    json: { directory: out, files: names },
    quiet: names,
    text: () =>
      `Wrote the client into ${out}. Install it in your application: npm install ${/^[./]/.test(out) ? out : `./${out}`}`,
  };
}

/** The files of the package, by their names. */
async function readBuilt(): Promise<[name: string, text: string][]> {
  const names = await readdir(BUILT).catch((cause: unknown) => {
    throw missing('NOT_FOUND', 'This installation has no client: build it with "npm run build"', { cause });
  });
  return Promise.all(
    names
      .filter((name) => !name.endsWith('.tgz'))
      .sort()
      .map(async (name): Promise<[string, string]> => [name, await readFile(join(BUILT, name), 'utf8')]),
  );
}

/** 409 NOT_A_CLIENT for the directory of another package, such as that of the application. */
async function rejectOther(directory: string, out: string): Promise<void> {
  const text = await readIfThere(join(directory, 'package.json'));
  if (text !== null && !/"name":\s*"@bsvc\/client"/.test(text)) {
    throw conflict('NOT_A_CLIENT', `${out} contains another package. Choose a directory of its own for --out.`);
  }
}

async function readIfThere(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  });
}
