import { type Doc, RawDocument, type Row } from '../codec/document.js';
import { decodeDocument } from '../codec/decode.js';
import { BsonFormatError } from '../codec/elements.js';
import { BsonValueError, encodeDocument } from '../codec/encode.js';
import type { CursorReply } from '../commands/read/cursors.js';
import { CODES, EngineError } from '../errors.js';
import type { LongRead } from '../storage/long-read.js';
import { StorageError, type StorageErrorCode } from '../storage/storage-error.js';

/** The options with which a reader thread opens the same data file. */
export interface ReaderOptions {
  readonly dataDir: string;
  readonly durability: 'full' | 'relaxed';
  /** Limit of its heap. */
  readonly heapMb?: number;
}

/** A command for a reader thread, as BSON: values of the classes of `bson` do not survive a structured clone. */
export interface ReaderCommand {
  readonly id: number;
  readonly db: string;
  readonly body: Uint8Array;
}

/** The client that asked for the command of that id is gone. */
export interface ReaderAbort {
  readonly abort: number;
}

/** The documents of a batch one after the other, or any other reply as one document; or why there is none. */
export type ReaderAnswer =
  | { readonly id: number; readonly rows: Uint8Array; readonly cursor: bigint; readonly ns: string }
  | { readonly id: number; readonly reply: Uint8Array }
  | { readonly id: number; readonly refusal: Refusal };

/** A read of the thread has looked at many documents. */
export interface ReaderNotice {
  readonly longRead: LongRead;
}

/** Sent once, when the data file is open. */
export const READY = 'ready';

interface Refusal {
  readonly code: number | null;
  readonly message: string;
  readonly extra?: Uint8Array;
  /** Of an error that is no refusal. */
  readonly stack?: string | undefined;
  /** Of what the data file says, such as damage. */
  readonly storage?: StorageErrorCode;
  readonly ns?: string | null;
}

/** The bytes in a buffer of their own, which can be handed to another thread without a copy. */
function detach(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/** A command's body in bytes of its own, which can be handed over to another thread. */
export function packBody(body: Doc): Uint8Array<ArrayBuffer> {
  return detach(encodeDocument(body));
}

/** The body from the bytes of `packBody`. */
export function unpackBody(body: Uint8Array): Doc {
  return decodeDocument(toBuffer(body));
}

/** Computed documents get their stored form here, so that the other side has nothing to do but to hand them on. */
export function packReply(id: number, reply: Doc): ReaderAnswer {
  const cursor = reply['cursor'] as (CursorReply & { nextBatch?: Row[] }) | undefined;
  if (cursor === undefined) return { id, reply: packBody(reply) };
  const rows = (cursor.firstBatch ?? cursor.nextBatch ?? []).map((row) =>
    row instanceof RawDocument ? row.bytes : encodeDocument(row),
  );
  const packed = new Uint8Array(rows.reduce((sum, row) => sum + row.length, 0));
  let at = 0;
  for (const row of rows) {
    packed.set(row, at);
    at += row.length;
  }
  return { id, rows: packed, cursor: cursor.id, ns: cursor.ns };
}

/** The rows of a packed batch; they share its memory. */
export function unpackRows(packed: Uint8Array): RawDocument[] {
  const bytes = toBuffer(packed);
  const rows: RawDocument[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + bytes.readInt32LE(at);
    rows.push(new RawDocument(bytes.subarray(at, end)));
    at = end;
  }
  return rows;
}

/** A thrown value as a message: refusals with their code, all else with text and stack. */
export function packError(id: number, error: unknown): ReaderAnswer {
  if (error instanceof EngineError) {
    const { code, message, extra } = error;
    return { id, refusal: { code, message, ...(extra === undefined ? {} : { extra: packBody({ ...extra }) }) } };
  }
  // As at the wire transport: what a client's values make of a reply is the client's affair.
  if (error instanceof BsonFormatError) return { id, refusal: { code: CODES.InvalidBSON, message: error.message } };
  if (error instanceof BsonValueError) return { id, refusal: { code: CODES.BadValue, message: error.message } };
  if (error instanceof StorageError) {
    return { id, refusal: { code: null, message: error.message, storage: error.code, ns: error.ns } };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { id, refusal: { code: null, message, stack } };
}

/** The error that `packError` packed, of the same class as far as callers tell classes apart. */
export function unpackError({ code, message, extra, stack, storage, ns }: Refusal): Error {
  if (code !== null) return new EngineError(code, message, extra === undefined ? undefined : unpackBody(extra));
  if (storage !== undefined) return new StorageError(storage, message, undefined, ns);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}

/** The buffers that a message hands over instead of copying them. */
export function transfersOf(message: ReaderAnswer): ArrayBuffer[] {
  if ('rows' in message) return [message.rows.buffer as ArrayBuffer];
  return 'reply' in message ? [message.reply.buffer as ArrayBuffer] : [];
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
