import { realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { conflict, missing } from '../../src/errors.js';
import type { Context } from './context.js';

/**
 * The path of a file to write, behind the links that lead to it. Refused before any work is done when the directory it
 * belongs into is not there, or something other than a file is at its place.
 */
export async function resolveOutput(context: Context, file: string, option = '--out'): Promise<string> {
  const path = resolve(context.io.cwd, file);
  const present = await stat(path).catch((error: unknown) => {
    if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return null;
  });
  // A finished file takes its place by a rename, which would put an end to a device or a pipe.
  if (present && !present.isFile()) {
    throw conflict(
      'NO_FILE',
      `${path} is ${present.isDirectory() ? 'a directory' : 'no regular file'}. Choose another ${option}.`,
    );
  }
  const directory = await stat(dirname(path)).catch(() => null);
  if (!directory?.isDirectory()) {
    throw missing(
      'DIRECTORY_MISSING',
      `There is no directory ${dirname(path)} to write into. Make it, or choose another ${option}.`,
    );
  }
  return present ? realpath(path) : path;
}
