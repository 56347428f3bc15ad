import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DATA_FILE } from '../../src/engine/storage/file/environment.js';
import { killHard, holdSnapshot } from '../helpers/snapshot-holder.js';
import { openEnginePerTest } from './engine-per-test.js';

const own = openEnginePerTest();

const notes = () => own.engine.db('shared').collection<{ _id: number; text: string }>('notes');

async function readIds(): Promise<number[]> {
  return (await notes().find({}).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
}

/**
 * Leaves in the lock file what a process leaves there that has looked at the data file before the last commits and
 * opens it after them. It runs in a process of its own: closing the lock file would end this one's locks.
 */
function openLate(commits: number): void {
  const script = `
    const fs = require('node:fs');
    const file = fs.openSync(process.argv[1], 'r+');
    const note = Buffer.alloc(8);
    fs.readSync(file, note, 0, 8, 8);
    note.writeBigUInt64LE(note.readBigUInt64LE() - BigInt(process.argv[2]));
    fs.writeSync(file, note, 0, 8, 8);
  `;
  execFileSync(process.execPath, ['-e', script, join(own.path, `${DATA_FILE}-lock`), String(commits)]);
}

describe('a process that opens the data file while others commit', () => {
  it.each([1, 2, 3, 16, 17])('undoes none of the last %i commits', async (commits) => {
    for (let _id = 0; _id < 20; _id++) await notes().insertOne({ _id, text: 'x'.repeat(_id * 200) });
    openLate(commits);
    await notes().insertOne({ _id: 20, text: 'after' });
    await notes().updateOne({ _id: 19 }, { $set: { text: 'changed' } });
    expect(await readIds()).toEqual(Array.from({ length: 21 }, (_, _id) => _id));
    expect(await notes().findOne({ _id: 19 })).toEqual({ _id: 19, text: 'changed' });
    expect(await own.engine.verify()).toEqual([]);
  });

  it('is itself the one that shows the last commit to all again', async () => {
    for (let _id = 0; _id < 3; _id++) await notes().insertOne({ _id, text: 'x' });
    openLate(1);
    const other = await holdSnapshot(own.path);
    try {
      expect(await readIds()).toEqual([0, 1, 2]);
    } finally {
      await killHard(other);
    }
  });
});
