import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEngine } from '../../index.js';
import { openRandom } from '../helpers/random.js';
import { temporaryDir } from '../transports.js';

/** BSVC_TEST_KILLS=100 for the long form. */
const KILLS = Number(process.env['BSVC_TEST_KILLS'] ?? 6);

/**
 * How many lines a writer has said at least before it is killed, and how many more at most. Lines and not
 * milliseconds, so that a slow machine has written as much as a fast one; the writer goes on while they are read, so
 * that it is killed in the middle of something.
 */
const MIN_LINES = 50;
const MORE_LINES = 400;
const SEED = 20_261_121;

interface Acknowledged {
  inserted: Set<string>;
  updated: Set<string>;
  /** Announced, perhaps done. */
  deleting: Set<string>;
  deleted: Set<string>;
}

describe('a writer killed at random moments', () => {
  const random = openRandom(SEED);
  let dataDir: string;

  beforeEach(() => {
    dataDir = temporaryDir();
  });

  afterEach(() => {
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('loses no acknowledged write, leaves nothing half done, and keeps indexes and counts right', async () => {
    const acknowledged: Acknowledged = {
      inserted: new Set(),
      updated: new Set(),
      deleting: new Set(),
      deleted: new Set(),
    };
    for (let round = 0; round < KILLS; round++) {
      await runAndKill(round, acknowledged);
      await checkData(acknowledged);
    }
    expect(acknowledged.inserted.size).toBeGreaterThan(KILLS * 10);
  });

  /** Kills the writer once it has said as many lines as are drawn for it. */
  async function runAndKill(round: number, acknowledged: Acknowledged): Promise<void> {
    const script = join(import.meta.dirname, '../crash-writer.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir, String(round)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let rest = '';
    let noted = 0;
    const enough = MIN_LINES + random.below(MORE_LINES);
    await new Promise<void>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', () => {
        resolve();
      });
      child.stdout.on('data', (chunk: Buffer) => {
        const lines = (rest + chunk.toString()).split('\n');
        rest = lines.pop()!;
        for (const line of lines) note(line, acknowledged);
        noted += lines.length;
        if (noted >= enough) child.kill('SIGKILL');
      });
    });
    expect(child.signalCode).toBe('SIGKILL');
  }

  function note(line: string, acknowledged: Acknowledged): void {
    const [what, id] = line.split(' ') as [string, string];
    if (what === 'insert') acknowledged.inserted.add(id);
    else if (what === 'update') acknowledged.updated.add(id);
    else if (what === 'deleting') acknowledged.deleting.add(id);
    else if (what === 'delete') acknowledged.deleted.add(id);
    else if (what === 'many') for (let k = 0; k < 20; k++) acknowledged.inserted.add(`${id}-many${k}`);
  }

  async function checkData({ inserted, updated, deleting, deleted }: Acknowledged): Promise<void> {
    const engine = openEngine({ dataDir });
    expect(await engine.verify()).toEqual([]);
    const items = engine.db('crash').collection<{ _id: string; n: number; slot: number; tags: string[] }>('items');
    const found = new Map((await items.find().toArray()).map((doc) => [doc._id, doc]));
    for (const id of inserted) if (!deleting.has(id)) expect(found.has(id), `inserted ${id}`).toBe(true);
    for (const id of deleted) expect(found.has(id), `deleted ${id}`).toBe(false);
    for (const id of updated) if (found.has(id)) expect(found.get(id)!.tags).toEqual(['updated']);
    expect(new Set([...found.values()].map((doc) => doc.slot)).size).toBe(found.size);
    expect(await items.countDocuments()).toBe(found.size);
    expect(await items.countDocuments({ tags: 'updated' })).toBe(
      [...found.values()].filter((doc) => doc.tags.includes('updated')).length,
    );
    await engine.close();
  }
});
