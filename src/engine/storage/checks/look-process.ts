import { join } from 'node:path';
import { rmSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { open } from 'lmdb';
import { damagedFile } from '../storage-error.js';
import { DATA_FILE, STORE_OPTIONS } from '../file/environment.js';
import { holdSnapshot } from '../file/guard-reads.js';
import { PageError } from '../file/page-layout.js';
import { PageFile } from '../file/page-file.js';
import { compareFreeKeys, PageSet, walkPages } from '../file/walk-pages.js';
import { DamageNotes } from './damage-notes.js';
import { compareBytes } from './verify.js';

/*
 * The program of the process that looks through a store that was not closed. It may die of what it meets, or outlive
 * the patience of the one that started it: what it finds it notes for the doctor as well.
 */

/** What the process has found, sent once: null when every page can be read. */
export interface LookReport {
  readonly damage: string | null;
}

/** How long it works before it looks whether the one that started it has ended. */
const TURN_MS = 50;

const [dataDir = '', mark = ''] = process.argv.slice(2);
const path = join(dataDir, DATA_FILE);
process.umask(0o077);
process.once('disconnect', () => process.exit());

async function look(): Promise<string | null> {
  // While its snapshot is held, others use no page of it again.
  const snapshot = holdSnapshot(open<Buffer, Buffer>({ ...STORE_OPTIONS, path, readOnly: true }));
  const file = new PageFile(path);
  let damage: string | null = null;
  const visitor = {
    entry: () => undefined,
    damage: (page: number, reason: string) => {
      damage ??= `page ${page}: ${reason}`;
    },
  };
  try {
    const meta = file.readMeta();
    const used = new PageSet(meta.lastPage);
    const trees = [walkPages(file, meta, meta.free, used, compareFreeKeys, visitor)];
    trees.push(walkPages(file, meta, meta.main, used, compareBytes, visitor));
    let turnEnds = performance.now() + TURN_MS;
    for (const pages of trees) {
      for (const _page of pages) {
        if (damage !== null) return damage;
        if (performance.now() < turnEnds) continue;
        await turn();
        turnEnds = performance.now() + TURN_MS;
      }
    }
    return damage;
  } catch (error) {
    if (error instanceof PageError || (error as NodeJS.ErrnoException).code === 'EIO') return (error as Error).message;
    throw error;
  } finally {
    snapshot.done();
  }
}

const damage = await look();
if (damage === null) rmSync(mark, { force: true });
else new DamageNotes(dataDir, path).judge(damagedFile(path, damage), null);
const report: LookReport = { damage };
process.send!(report, () => process.exit());
