import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { checksum } from '../format/checksum.js';
import { damagedRecord } from '../storage-error.js';
import type { CollectionDefinition } from '../keys/index-definition.js';
import { contentOf, isSealIntact, seal } from '../format/stored-form.js';

/** A record of the catalog as it is stored: with its checksum. */
export function encodeRecord(key: Buffer, content: Buffer): Buffer {
  return seal(checksum(0, key, key.length), content);
}

/** The content of a record. Throws DAMAGED naming `what` it is. */
export function decodeRecord(key: Buffer, value: Buffer, what: string): Buffer {
  if (!isSealIntact(checksum(0, key, key.length), value)) throw damagedRecord(what);
  return contentOf(value);
}

/** The record of a collection's definition, with the checksum that belongs to its key. */
export function encodeDefinition(key: Buffer, definition: CollectionDefinition): Buffer {
  // An interface without an index signature is no Doc to the compiler.
  return encodeRecord(key, encodeDocument(definition as unknown as Doc));
}

/** The definition of the collection whose namespace the key holds. Throws DAMAGED. */
export function decodeDefinition(key: Buffer, value: Buffer): CollectionDefinition {
  const what = `The definition of ${key.toString('utf8', 1)}`;
  const content = decodeRecord(key, value, what);
  try {
    // Written by encodeDefinition, and its checksum was right.
    return decodeDocument(content) as unknown as CollectionDefinition;
  } catch (error) {
    throw damagedRecord(what, error);
  }
}
