import { join } from 'node:path';
import { open } from 'lmdb';
import { decodeDocument } from '../../src/engine/codec/decode.js';
import { encodeDocument } from '../../src/engine/codec/encode.js';
import { DATA_FILE } from '../../src/engine/storage/file/environment.js';
import { contentOf, SUM_BYTES } from '../../src/engine/storage/format/stored-form.js';

/**
 * Rewrites a data file that nobody has open as format 1 had it: no checksums, and counts of documents and bytes alone.
 */
export async function makeFormatOne(dataDir: string): Promise<void> {
  const store = open<Buffer, Buffer>({
    path: join(dataDir, DATA_FILE),
    noSubdir: true,
    keyEncoding: 'binary',
    encoding: 'binary',
    overlappingSync: false,
  });
  const entries = [...store.getRange({ start: Buffer.from([0]) })];
  store.transactionSync(() => {
    for (const { key, value } of entries) store.putSync(key, plainForm(key, value));
  });
  await store.close();
}

function plainForm(key: Buffer, value: Buffer): Buffer {
  switch (key[0]) {
    case 0x01:
      if (key.toString('latin1', 1) === 'format') return encodeDocument({ ...decodeDocument(value), format: 1 });
      return key.toString('latin1', 1) === 'next' ? contentOf(value) : value;
    case 0x02: {
      const definition = decodeDocument(contentOf(value));
      for (const field of ['checked', 'converter', 'countBy']) delete definition[field];
      return encodeDocument(definition);
    }
    case 0x03:
      return Buffer.from([1]);
    case 0x04:
      return contentOf(value).subarray(0, 16);
    case 0x10:
      return value.subarray(0, value.length - SUM_BYTES);
    default:
      return contentOf(value);
  }
}
