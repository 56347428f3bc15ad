import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/config.js';
import { openBackupPlace } from '../../../src/features/backups/backup-place.js';
import { backupName } from '../../../src/features/backups/backup-schedule.js';
import { openTempDir } from '../../helpers/temp-dir.js';

const HOUR_MS = 3_600_000;
const { config } = loadConfig([]);

describe('a directory of backups', () => {
  it('loses with the next backup what a killed process has left of one', async () => {
    const dir = await openTempDir();
    try {
      const [left, written, next] = [1, 2, 3].map((day) => backupName(new Date(`2026-01-0${day}T03:00:00Z`)));
      const others = ['.notes.part', `.${written}.part`, 'readme.txt'];
      for (const name of [`.${left}.part`, ...others]) await writeFile(join(dir.path, name), 'half');
      const longAgo = new Date(Date.now() - 2 * HOUR_MS);
      for (const name of [`.${left}.part`, '.notes.part', 'readme.txt']) {
        await utimes(join(dir.path, name), longAgo, longAgo);
      }
      const source = join(dir.path, 'readme.txt');
      const place = await openBackupPlace({ config }, dir.path);
      await place.put(next!, source);
      expect((await readdir(dir.path)).sort()).toEqual([...others, next].sort());
      expect((await place.list()).map(({ name }) => name)).toEqual([next]);
    } finally {
      await dir.remove();
    }
  });
});
