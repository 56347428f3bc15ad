import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import rawBody from 'raw-body';
import { invalid, timedOut, tooLarge } from '../../errors.js';

const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** The length that a request announces; null for one that comes in chunks. */
export function declaredLength({ headers }: IncomingMessage): number | null {
  if (headers['transfer-encoding'] !== undefined) return null;
  return Number(headers['content-length'] ?? 0);
}

interface ReadOptions {
  /** The most bytes, unpacked: 413 BODY_TOO_LARGE for more. */
  limit: number;
  /** The time for all of them: 408 REQUEST_TIMEOUT after it. */
  ms: number;
  /** The code of the 400 for a body that is cut short or not packed as it says. */
  malformed: string;
}

/** The whole body, unpacked. */
export async function readBytes(req: IncomingMessage, { limit, ms, malformed }: ReadOptions): Promise<Buffer> {
  const { stream, length, leave } = unpack(req, malformed);
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      timer = setTimeout(() => reject(tooSlow(ms)), ms);
      rawBody(stream, { limit, length }).then(resolve, (error: unknown) => reject(explain(error, limit, malformed)));
    });
  } finally {
    clearTimeout(timer);
    leave();
  }
}

interface Unpacked {
  stream: Readable;
  length: number | null;
  /** Lets the request go, whether or not all of it was read. */
  leave: () => void;
}

function unpack(req: IncomingMessage, malformed: string): Unpacked {
  const encoding = (req.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding === 'identity') return { stream: req, length: declaredLength(req), leave: () => undefined };
  const open = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (!open) throw invalid(malformed, `The content encoding ${encoding.slice(0, 40)} is not known`);
  const decoder = open();
  const cut = (): void => {
    if (!req.complete) decoder.destroy(new Error('the body was cut short'));
  };
  req.once('close', cut);
  req.pipe(decoder);
  const leave = (): void => {
    req.off('close', cut);
    req.unpipe(decoder);
    // What it still finds wrong is nobody's business any more.
    decoder.on('error', () => undefined).destroy();
  };
  return { stream: decoder, length: null, leave };
}

function explain(error: unknown, limit: number, malformed: string): Error {
  if ((error as { status?: number }).status === 413) {
    return tooLarge('BODY_TOO_LARGE', `The body is larger than ${limit} bytes`);
  }
  // Everything else that reading can throw is the client's doing: bad gzip, a body cut short.
  return invalid(malformed, 'The body was cut short, or is not packed as its Content-Encoding says', {
    cause: error,
  });
}

const tooSlow = (ms: number): Error =>
  timedOut('REQUEST_TIMEOUT', `The body did not arrive within ${Math.ceil(ms / 1000)} seconds`, {
    headers: { Connection: 'close' },
  });
