import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { conflict, missing } from '../../src/errors.js';
import { PACKAGE_ROOT } from '../../src/package.js';
import { replaceFile } from './replace-file.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';
import type { Result } from '../view/output.js';

const BUILT = join(PACKAGE_ROOT, 'dist', 'client');
/** As the system makes files that belong among sources. */
const FOR_ALL = 0o666;

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
  await mkdir(directory, { recursive: true });
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
