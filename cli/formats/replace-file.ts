import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { conflict } from '../../src/errors.js';
import { placeFile } from '../../src/platform/durable-files.js';
import { nameDraft, removeLeftDrafts } from '../../src/platform/processes/work-folder.js';

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
