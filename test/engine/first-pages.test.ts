import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../src/engine/index.js';
import { DATA_FILE } from '../../src/engine/storage/file/environment.js';
import { readFirstPages, MAIN_TREE_AT, META_BYTES, TRANSACTION_AT } from '../../src/engine/storage/file/page-layout.js';
import { PAGE_BYTES } from './page-map.js';
import { temporaryDir } from './transports.js';

/** Of a meta page: of which kinds its two trees are, and which commit it is. */
const kindsAndCommit = (meta: Buffer): string =>
  [meta.subarray(MAIN_TREE_AT - 48, MAIN_TREE_AT - 42), meta.subarray(MAIN_TREE_AT, MAIN_TREE_AT + 6)]
    .concat(meta.subarray(TRANSACTION_AT, META_BYTES))
    .map((bytes) => bytes.toString('hex'))
    .join(' ');

describe('the first two pages', () => {
  const dataDir = temporaryDir();
  const path = join(dataDir, DATA_FILE);
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  it.each([30, 31, 32, 33])('name the last of %i commits, or none, whatever bit is flipped', async (commits) => {
    const engine = openEngine({ dataDir });
    for (let n = 0; n < commits; n++) await engine.db('d').collection('c').insertOne({ n });
    await engine.close();
    const bytes = readFileSync(path);
    const file = openSync(path, 'r+');
    const whole = kindsAndCommit(readFirstPages(file).newest);
    const wrong: string[] = [];
    for (let n = 0; n < 2 * META_BYTES * 8; n++) {
      const at = (n < META_BYTES * 8 ? 0 : PAGE_BYTES) + (Math.floor(n / 8) % META_BYTES);
      writeSync(file, Buffer.of(bytes[at]! ^ (1 << (n % 8))), 0, 1, at);
      try {
        const newest = kindsAndCommit(readFirstPages(file).newest);
        if (newest !== whole) wrong.push(`bit ${n % 8} of byte ${at}: ${newest}`);
      } catch (error) {
        expect(String(error)).toContain('not those of two commits in a row');
      }
      writeSync(file, bytes, at, 1, at);
    }
    closeSync(file);
    expect(wrong).toEqual([]);
  });
});
