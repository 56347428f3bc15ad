import type { Readable } from 'node:stream';
import type { StoredBytes } from './block-sums.js';

export interface PutOptions {
  contentType: string;
  /** Marks the object so that a browser saves it instead of showing it. */
  attachment: boolean;
}

export interface PutGrant {
  contentType: string;
  /** The exact number of bytes that may be sent. */
  size: number;
  expiresInMs: number;
}

/**
 * A store of files' bytes. Keys are `<folder>/<name>` in a restricted alphabet (isObjectKey); any other key names
 * nothing.
 */
export interface ObjectStore {
  readonly kind: 'local' | 's3';
  /**
   * Streams `body` to the end and stores it whole, replacing what was there; when `body` fails nothing is stored.
   */
  put(key: string, body: Readable, options: PutOptions): Promise<StoredBytes>;
  /** Size of the stored object in bytes, or null when there is none. */
  findSize(key: string): Promise<number | null>;
  /** Removes the object; harmless when there is none. */
  remove(key: string): Promise<void>;
  /**
   * An address that takes one PUT body of exactly that type and size until it expires. `serviceUrl`: the address of
   * bsvc itself as its client knows it.
   */
  signPutUrl(key: string, grant: PutGrant, serviceUrl: string): Promise<string>;
  /** An address that reads the object, with GET and HEAD, until it expires; a store of ours signs the `mark` in it. */
  signGetUrl(key: string, expiresInMs: number, serviceUrl: string, mark?: string): Promise<string>;
  /** The public URL of the object, or null if the store has none. */
  publicUrl(key: string, serviceUrl: string): string | null;
  close(): void;
}

const KEY = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\/[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/** True for `<folder>/<name>` without anything that a file system, a URL or a signature could read differently. */
export function isObjectKey(text: string): boolean {
  return KEY.test(text) && !text.includes('..');
}

/** Throws for anything but an object key; keys are made by us, so this is a last wall and not a check of input. */
export function requireObjectKey(text: string): string {
  if (!isObjectKey(text)) throw new TypeError('not an object key');
  return text;
}
