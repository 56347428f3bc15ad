import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';

/** A part of a file can be checked without the rest: each block has a checksum of its own. */
const BLOCK_BYTES = 64 * 1024;
const SUM_BYTES = 4;

/** Makes the checksums of a file while its bytes come in: CRC-32 of each block. */
export class BlockSums {
  readonly #sums: number[] = [];
  #sum = 0;
  #filled = 0;

  add(chunk: Buffer): void {
    for (let from = 0; from < chunk.length;) {
      const part = chunk.subarray(from, from + BLOCK_BYTES - this.#filled);
      this.#sum = crc32(part, this.#sum);
      this.#filled += part.length;
      from += part.length;
      if (this.#filled === BLOCK_BYTES) this.#endBlock();
    }
  }

  finish(): Buffer {
    if (this.#filled > 0) this.#endBlock();
    const bytes = Buffer.allocUnsafe(this.#sums.length * SUM_BYTES);
    for (const [n, sum] of this.#sums.entries()) bytes.writeUInt32LE(sum, n * SUM_BYTES);
    return bytes;
  }

  #endBlock(): void {
    this.#sums.push(this.#sum);
    this.#sum = 0;
    this.#filled = 0;
  }
}

/** What was stored of a file, by which its bytes are compared whenever they are read. */
export interface StoredBytes {
  size: number;
  /** Of BlockSums. */
  sums: Buffer;
}

/** A stored file that is not as it was written. */
export class DamagedFileError extends Error {
  constructor(
    readonly object: string,
    reason: string,
  ) {
    super(`The uploaded file ${object} ${reason}`);
    this.name = 'DamagedFileError';
  }
}

/** Something else than a file lies where one was stored, such as a symbolic link. */
export class ReplacedFileError extends DamagedFileError {
  constructor(object: string) {
    super(object, 'was replaced by something that is no file');
  }
}

/** Compares what was read of a whole file with what was stored; null when it is the same. */
export function findDifference(object: string, stored: StoredBytes, read: StoredBytes): DamagedFileError | null {
  if (read.size !== stored.size) {
    return new DamagedFileError(object, `has ${read.size} bytes instead of ${stored.size}`);
  }
  if (read.sums.equals(stored.sums)) return null;
  const at = read.sums.findIndex((byte, n) => byte !== stored.sums[n]);
  return otherBytes(object, Math.floor(at / SUM_BYTES));
}

function otherBytes(object: string, block: number): DamagedFileError {
  const from = block * BLOCK_BYTES;
  return new DamagedFileError(object, `has other bytes than were stored, between ${from} and ${from + BLOCK_BYTES}`);
}

/**
 * The bytes of a stored file from `start` to `end` (inclusive), each block compared before it is given out. Throws
 * DamagedFileError. The file is closed at the end.
 */
export async function* readChecked(
  { file, size }: { file: FileHandle; size: number },
  object: string,
  stored: StoredBytes,
  { start, end }: { start: number; end: number } = { start: 0, end: stored.size - 1 },
): AsyncGenerator<Buffer, void, undefined> {
  try {
    if (size !== stored.size) throw new DamagedFileError(object, `has ${size} bytes instead of ${stored.size}`);
    for (let block = Math.floor(start / BLOCK_BYTES); block * BLOCK_BYTES <= end; block++) {
      const from = block * BLOCK_BYTES;
      const bytes = await readFully(file, from, Math.min(BLOCK_BYTES, size - from));
      if (crc32(bytes) !== stored.sums.readUInt32LE(block * SUM_BYTES)) throw otherBytes(object, block);
      yield bytes.subarray(Math.max(start - from, 0), end - from + 1);
    }
  } finally {
    await file.close();
  }
}

async function readFully(file: FileHandle, from: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
