import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { conflict } from '../../src/errors.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';

const CHUNK_BYTES = 256 * 1024;

/** A file in pieces, or standard input for `-`. */
export function openSource(context: Context, file: string): AsyncIterable<Buffer> {
  if (file === '-') return context.io.stdin as AsyncIterable<Buffer>;
  return createReadStream(resolve(context.io.cwd, file), { highWaterMark: CHUNK_BYTES, signal: context.stop });
}

/** Bytes of the file, null for standard input. Refuses what cannot be read before anything is connected. */
export async function measureSource(context: Context, file: string): Promise<number | null> {
  if (file !== '-') {
    const found = await stat(resolve(context.io.cwd, file));
    if (found.isDirectory()) throw conflict('NO_FILE', `${file} is a directory: name a file in it`);
    return found.size;
  }
  if (context.io.stdin.isTTY) {
    throw new UsageError('Standard input is a terminal: pipe the documents in, or name a file.');
  }
  return null;
}
