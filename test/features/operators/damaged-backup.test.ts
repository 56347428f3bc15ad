import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { backUp } from '../../../src/features/store-copies/back-up.js';
import { verifyBackup } from '../../../src/features/store-copies/restore-backup.js';
import { MIGRATIONS } from '../../../src/migrations/migrate.js';
import { buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
await buildProject(test.app);
const path = join(test.dataDir, 'a.backup');
const options = { stop: new AbortController().signal, onProgress: () => undefined };
await backUp(test.app, path, options);
const whole = readFileSync(path);

const verify = () =>
  verifyBackup(
    test.app,
    path,
    MIGRATIONS.map(({ id }) => id),
  );

/** Positions spread over the whole length, the first bytes among them. */
const positionsIn = (length: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => Math.floor((at * (length - 1)) / (count - 1)));

describe('a backup with one bit changed', () => {
  it('is whole without', async () => {
    await expect(verify()).resolves.toMatchObject({ version: expect.any(String) as string });
  });

  it.each([
    ['as it lies on the disk', (flip: (bytes: Buffer) => Buffer) => flip(whole)],
    // As if the checksum of gzip had been met by chance.
    ['in what is packed', (flip: (bytes: Buffer) => Buffer) => gzipSync(flip(gunzipSync(whole)))],
  ])('%s: is always said to be damaged', async (_where, change) => {
    const plain = gunzipSync(whole).length;
    for (const part of positionsIn(plain, 120)) {
      writeFileSync(
        path,
        change((bytes) => {
          const flipped = Buffer.from(bytes);
          flipped[Math.floor((part / plain) * bytes.length)]! ^= 1 << (part % 7);
          return flipped;
        }),
      );
      const outcome = await verify().then(
        () => 'whole',
        (error: unknown) => (error as { code?: string }).code,
      );
      // Some bytes of gzip's head mean nothing: the name of a system, a time.
      const isUnread = part < plain / 50 && outcome === 'whole';
      expect(isUnread ? 'BACKUP_DAMAGED' : outcome, `position ${part} of ${plain}`).toBe('BACKUP_DAMAGED');
    }
  });
});
