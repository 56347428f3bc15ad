import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { serialize } from 'bson';
import { describe, expect, it } from 'vitest';
import { BACKUP_FORMAT } from '../../src/features/store-copies/backup-archive.js';
import { verifyBackup } from '../../src/features/store-copies/restore-backup.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();

const HEAD = {
  format: BACKUP_FORMAT,
  version: '0.1.0',
  createdAt: '2026-01-01T00:00:00Z',
  secretKey: randomBytes(32).toString('base64'),
};
const COLLECTION = { collection: 'plans', indexes: [] };
const DOCUMENT = { document: Buffer.from(serialize({ _id: 1 })).toString('base64') };
const BYTES = { bytes: Buffer.from('hello').toString('base64') };

/** An archive of these lines, with the end and the checksum that belong to them. */
async function forge(lines: readonly (object | string)[]): Promise<string> {
  const texts = [HEAD, ...lines].map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  const count = (kind: string): number => lines.filter((line) => typeof line === 'object' && kind in line).length;
  const sha256 = createHash('sha256')
    .update(texts.map((text) => `${text}\n`).join(''))
    .digest('hex');
  const end = { end: { documents: count('document'), files: count('file'), sha256 } };
  const path = join(test.dataDir, 'forged.bak');
  await writeFile(path, gzipSync([...texts, JSON.stringify(end), ''].join('\n')));
  return path;
}

describe('a forged archive', () => {
  it('is none with lines as a backup writes them', async () => {
    const path = await forge([COLLECTION, DOCUMENT, { file: 'a/b.txt', size: 5 }, BYTES]);
    expect(await verifyBackup(test.app, path, [])).toMatchObject({ version: '0.1.0' });
  });

  it.each<[string, (object | string)[]]>([
    ['bytes before a file', [COLLECTION, BYTES]],
    ['a document before a collection', [DOCUMENT]],
    ['a document behind files', [COLLECTION, { file: 'a', size: 5 }, DOCUMENT]],
    ['a second head', [COLLECTION, HEAD]],
    ['a collection of the database itself', [{ collection: 'system.users', indexes: [] }]],
    ['a name that is none', [{ collection: 'a\0b', indexes: [] }]],
    ['a path that leads out', [{ file: '../../etc/passwd', size: 5 }, BYTES]],
    ['an absolute path', [{ file: '/etc/passwd', size: 5 }, BYTES]],
    ['a path with a zero', [{ file: 'a\0b', size: 5 }, BYTES]],
    ['a document that is none', [COLLECTION, { document: 'AAAA' }]],
    ['a line of another kind', [COLLECTION, { other: 1 }]],
    ['an endless line', [COLLECTION, `{"bytes":"${'A'.repeat(40 * 1024 * 1024)}"}`]],
  ])('is refused before anything is changed: %s', async (_what, lines) => {
    const path = await forge(lines);
    await expect(verifyBackup(test.app, path, [])).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' });
  });
});
