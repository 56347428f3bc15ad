import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { flipBit, mapPages, nodesOf } from '../../../src/engine/test/page-map.js';
import { eventually } from '../../helpers/eventually.js';
import { openRandom } from '../../helpers/random.js';
import { runBinary, runOrThrow, startService } from '../../helpers/run-binary.js';
import { openSeed } from '../../helpers/seed.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { use } from '../../helpers/use.js';

const DOCUMENTS = 2_000;
const KILLS = 3;

const file = () => join(data, 'bsvc.mdb');
const exportNotes = () => runOrThrow(['data', 'export', 'notes', '--format', 'ndjson'], env);

interface Repair {
  whole: boolean;
  problems: string[];
  documents: number;
  damagedFile: string | null;
  collections: { ns: string; lost: number; ids: string[]; rebuilt: string[] }[];
}

const repair = async (...options: string[]): Promise<Repair> =>
  JSON.parse(await runOrThrow(['doctor', '--repair', '--json', ...options], env)) as Repair;

/** Changes a bit of every copy of the text. */
function damage(text: string): void {
  const bytes = readFileSync(file());
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) flipBit(data, at, 5);
}

const dir = use(await openTempDir());
const data = join(dir.path, 'data');
const env: Record<string, string> = {
  BSVC_DATA_DIR: data,
  BSVC_DURABILITY: 'relaxed',
  BSVC_PROJECT: 'shop',
  BSVC_PORT: '0',
};
await runOrThrow(['project', 'create', 'shop'], env);
await runOrThrow(['collection', 'add', 'notes', '--field', 'n:Number', '--field', 'text:String', '--index', 'n'], env);
const stdin = Array.from({ length: DOCUMENTS }, (_, n) => `{"n":${n},"text":"text number ${n} of all"}\n`).join('');
const { code } = await runBinary(['data', 'import', 'notes', '-', '--format', 'ndjson'], { env, stdin });
expect(code).toBe(0);
const exported = await exportNotes();
mkdirSync(join(dir.path, 'whole'));
copyFileSync(file(), join(dir.path, 'whole', 'bsvc.mdb'));

/** The store as it was before anything was damaged. */
function bringBack(): void {
  for (const name of readdirSync(data)) {
    if (name.startsWith('bsvc.mdb') || name === 'damage-met') rmSync(join(data, name));
  }
  copyFileSync(join(dir.path, 'whole', 'bsvc.mdb'), file());
}

/** In the newest record of the free list, which is used up last: what the next commands write goes elsewhere. */
function nameUsedPageFree(): void {
  const pages = mapPages(data);
  const free = pages.filter(({ kind, isLeaf }) => kind === 'free' && isLeaf).at(-1)!;
  const bytes = readFileSync(file());
  // A node: its header and key, the number of entries, the entries.
  const record = nodesOf(data, free.number).at(-1)! + 8 + 8;
  const entries = Number(bytes.readBigUInt64LE(record));
  for (let at = record + 8; at <= record + 8 * entries; at += 8) {
    for (let bit = 0; bit < 8; bit++) {
      if (pages[Number(bytes.readBigUInt64LE(at)) ^ (1 << bit)]?.kind === 'leaf') return flipBit(data, at, bit);
    }
  }
  throw new Error('no page in use is one bit from a free one');
}

describe('bsvc doctor --repair', () => {
  it('leaves a whole store alone', async () => {
    const before = readFileSync(file());
    expect(await repair()).toMatchObject({ whole: true, problems: [], damagedFile: null });
    expect(readFileSync(file()).equals(before)).toBe(true);
  });

  it('is named by what finds damage, refused while somebody serves, and tried without a change', async () => {
    damage('text number 777 of all');
    const server = await startService(['serve'], env);
    const doctor = await runBinary(['doctor', '--deep'], { env });
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringContaining('bsvc doctor --repair')]);
    expect(doctor.stdout).toContain('notes of project shop');
    const read = await runBinary(['data', 'export', 'notes'], { env });
    expect([read.code, read.stderr]).toEqual([1, expect.stringContaining('bsvc doctor --repair')]);
    const refused = await runBinary(['doctor', '--repair'], { env });
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain(`is open in other processes (${server.process.pid}): end them, then repair it.`);
    await server.stop();
    const before = readFileSync(file());
    const { damagedFile, collections } = await repair('--dry-run');
    expect(damagedFile).toBeNull();
    expect(collections).toMatchObject([{ lost: 1, ids: [expect.stringMatching(/^[0-9a-f]{24}$/)] }]);
    expect(readFileSync(file()).equals(before)).toBe(true);
  });

  it('keeps everything but the document that is damaged, names it, and keeps the damaged file', async () => {
    const before = readFileSync(file());
    const { code, stdout } = await runBinary(['doctor', '--repair'], { env });
    expect(code).toBe(0);
    expect(stdout).toContain('Lost of notes of project shop: ');
    expect(stdout).toMatch(/The damaged file is \S+bsvc\.mdb\.damaged-\d{8}T\d{6}Z\./);
    const damagedFile = readdirSync(data).find((name) => name.startsWith('bsvc.mdb.damaged-'))!;
    expect(readFileSync(join(data, damagedFile)).equals(before)).toBe(true);
    const lost = exported.split('\n').find((line) => line.includes('text number 777 of all'))!;
    expect(stdout).toContain((JSON.parse(lost) as { _id: string })._id);
    expect((await exportNotes()).split('\n')).toEqual(exported.split('\n').filter((line) => line !== lost));
    expect((await runBinary(['doctor', '--deep', '--json'], { env })).stdout).not.toMatch(/"content","ok":false/);
    const audit = JSON.parse(await runOrThrow(['audit', '--json'], env)) as { data: { action: string }[] };
    expect(JSON.stringify(audit)).toContain('"doctor"');
    const server = await startService(['serve'], env);
    expect(await server.stop()).toBe(0);
  });

  it('makes a new list of free pages where it names pages in use, which does not close the store', async () => {
    bringBack();
    nameUsedPageFree();
    const { stdout } = await runBinary(['doctor', '--deep', '--json'], { env });
    expect(stdout).toMatch(
      /list of free pages is damaged.*To repair it, stop what serves it and run \\"bsvc doctor --repair\\"/,
    );
    expect(await exportNotes()).toBe(exported);
    const { collections, damagedFile } = await repair();
    expect(collections).toEqual([]);
    expect(damagedFile).not.toBeNull();
    expect(await exportNotes()).toBe(exported);
    await runOrThrow(['collection', 'add', 'more', '--flexible'], env);
  });

  it('opens what cannot be opened any more: pages out of order, a first page that says nothing', async () => {
    bringBack();
    const leaves = mapPages(data).filter(({ kind, key }) => kind === 'leaf' && key[0] === 0x10);
    flipBit(data, leaves[Math.floor(leaves.length / 2)]!.number * 4096 + 18, 4);
    flipBit(data, 25, 3);
    const read = await runBinary(['data', 'export', 'notes'], { env });
    expect([read.code, read.stderr]).toEqual([3, expect.stringContaining('bsvc doctor --repair')]);
    await repair();
    expect(await exportNotes()).toBe(exported);
  });

  it('is all or nothing when it is killed, wherever, and others find the store as it was or repaired', async () => {
    bringBack();
    damage('text number 999 of all');
    const damaged = readFileSync(file());
    const random = openRandom(openSeed('killed repairs'));
    let killed = 0;
    for (let n = 0; n < KILLS; n++) {
      writeFileSync(file(), damaged);
      // From its first trace on, a number of turns later.
      let turns = random.below(60);
      const run = runBinary(['doctor', '--repair', '--json'], {
        env,
        onStart(child) {
          const look = (): void => {
            if (child.exitCode !== null) return;
            const begun = readdirSync(data).includes('repairing');
            if (begun && turns-- <= 0) child.kill('SIGKILL');
            else setTimeout(look, 5);
          };
          look();
        },
      });
      if ((await run).code === null) killed++;
      const isAsBefore = readFileSync(file()).equals(damaged);
      const found = await runBinary(['doctor', '--deep', '--json'], { env });
      if (!isAsBefore) expect(found.stdout).toContain('"name":"content","ok":true');
      for (const name of readdirSync(data)) if (name.startsWith('bsvc.mdb.damaged-')) rmSync(join(data, name));
    }
    expect(killed).toBeGreaterThan(0);
    writeFileSync(file(), damaged);
    rmSync(`${file()}-lock`, { force: true });
    expect(await repair()).toMatchObject({ collections: [{ lost: 1 }] });
    expect(readdirSync(data).filter((name) => /repair/.test(name))).toEqual([]);
    expect((await exportNotes()).split('\n')).toHaveLength(DOCUMENTS - 1);
  });

  it('lets nobody open the store while it works', async () => {
    bringBack();
    damage('text number 999 of all');
    let beside: Promise<{ code: number | null; stderr: string }> | undefined;
    const run = runBinary(['doctor', '--repair', '--json'], {
      env,
      onStart(child) {
        void eventually('it has begun', () => readdirSync(data).includes('repairing')).then(() => {
          child.kill('SIGSTOP');
          // Where it was stopped with a lock of LMDB's, the other waits until it goes on.
          const late = setTimeout(() => child.kill('SIGCONT'), 30_000);
          beside = runBinary(['project', 'list'], { env }).finally(() => {
            clearTimeout(late);
            child.kill('SIGCONT');
          });
        });
      },
    });
    await eventually('somebody tries', () => beside !== undefined);
    const { code, stderr } = await beside!;
    await run;
    // Stopped before it had the file open, it finds the other and refuses.
    if (code === 3) expect(stderr).toMatch(/is being repaired by process \d+; try again when it has ended\./);
    else expect(code).toBe(0);
    expect((await runBinary(['project', 'list'], { env })).code).toBe(0);
  });

  it('has nothing to do where there is no store', async () => {
    const { code, stderr } = await runBinary(['doctor', '--repair', '--data-dir', join(dir.path, 'none')], { env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('There is no database in')]);
  });
});
