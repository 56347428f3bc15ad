import { realpath, stat, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { conflict, missing } from '../../src/errors.js';
import type { Context } from '../shell/context.js';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { placeFile } from '../../src/platform/durable-files.js';
import { nameDraft, removeLeftDrafts } from '../../src/platform/processes/work-folder.js';

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

/** As the system makes files without secrets, which belong among sources. */
export const FOR_ALL = 0o666;
/** Readable by its owner alone, as everything that describes a project. */
const OWNERS = 0o600;

/** Puts a text in the place of a file in one step: a failure, as on a full disk, leaves the old one whole. */
export async function replaceFile(path: string, text: string | AsyncIterable<string>, mode = OWNERS): Promise<void> {
  await removeLeftDrafts(path);
  const draft = nameDraft(path);
  try {
    await explainFullDisk(path, pipeline(Readable.from(text), createWriteStream(draft, { flags: 'wx', mode })));
    await placeFile(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Waits for a file to be written; 409 OUTPUT_LOST where its disk is full, which need not be that of the store. */
export async function explainFullDisk<T>(path: string, written: Promise<T>): Promise<T> {
  try {
    return await written;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined || (code !== 'ENOSPC' && code !== 'EDQUOT')) throw error;
    throw conflict('OUTPUT_LOST', `${path} cannot be written: the disk is full. A file that was there stays as it was`);
  }
}
