import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEngine, StorageError } from '../../index.js';
import { PageFile } from '../../storage/file/page-file.js';
import { eventually } from '../helpers/eventually.js';
import { temporaryDir } from '../transports.js';

const ENGINE = join(import.meta.dirname, '../../index.ts');

describe('the data file', () => {
  let dataDir: string;
  let file: string;

  beforeEach(() => {
    dataDir = temporaryDir();
    file = join(dataDir, 'bsvc.mdb');
  });

  afterEach(() => {
    rmSync(dataDir, { recursive: true, force: true });
  });

  function openingCode(): string {
    try {
      void openEngine({ dataDir }).close();
      return 'opened';
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      expect(error.message).toContain(dataDir);
      return error.code;
    }
  }

  /** Behind it there may be room for what is written next. */
  function usedBytes(): number {
    const pages = new PageFile(file);
    const { lastPage, pageBytes } = pages.readMeta();
    pages.close();
    return (lastPage + 1) * pageBytes;
  }

  async function fill(documents: number): Promise<void> {
    const engine = openEngine({ dataDir });
    const docs = Array.from({ length: documents }, (_, n) => ({ _id: n as never, text: 'x'.repeat(200) }));
    await engine.db('d').collection('c').insertMany(docs);
    await engine.close();
  }

  it('is made in a directory that does not exist yet, readable by its owner only', async () => {
    dataDir = join(dataDir, 'deeper', 'still');
    const engine = openEngine({ dataDir });
    await engine.close();
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(existsSync(join(dataDir, 'bsvc.mdb'))).toBe(true);
  });

  it('is its owner’s alone in a directory that others may look into, too', async () => {
    chmodSync(dataDir, 0o755);
    await openEngine({ dataDir }).close();
    for (const name of readdirSync(dataDir)) expect(statSync(join(dataDir, name)).mode & 0o777, name).toBe(0o600);
  });

  it('holds what was written after closing and opening again', async () => {
    await fill(100);
    const engine = openEngine({ dataDir });
    expect(await engine.db('d').collection('c').countDocuments()).toBe(100);
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });

  it('is refused when it is something else', () => {
    writeFileSync(file, randomBytes(100_000));
    expect(openingCode()).toBe('FOREIGN');
    writeFileSync(file, 'hello');
    expect(openingCode()).toBe('FOREIGN');
  });

  it('is refused when another program made it with LMDB', async () => {
    const store = open({ path: file, noSubdir: true });
    await store.put('a', 1);
    await store.close();
    expect(openingCode()).toBe('FOREIGN');
  });

  it('is refused when it was cut short, instead of crashing on the first read', async () => {
    await fill(20_000);
    truncateSync(file, Math.floor(usedBytes() / 2));
    expect(openingCode()).toBe('TRUNCATED');
    truncateSync(file, 4096);
    expect(openingCode()).toBe('TRUNCATED');
  });

  it('is refused when a newer version wrote it', async () => {
    await fill(1);
    const script = `
      import { openEnvironment } from ${JSON.stringify(join(import.meta.dirname, '../../storage/file/environment.ts'))};
      import { encodeDocument } from ${JSON.stringify(join(import.meta.dirname, '../../codec/encode.ts'))};
      const { store, close } = openEnvironment(${JSON.stringify(dataDir)}, 'full');
      const key = Buffer.concat([Buffer.from([1]), Buffer.from('format')]);
      store.transactionSync(() => store.putSync(key, encodeDocument({ engine: 'bsvc', format: 99 })));
      await close();`;
    runNode(script);
    expect(openingCode()).toBe('NEWER_FORMAT');
  });

  it('is refused with advice when the directory cannot be written to', () => {
    mkdirSync(join(dataDir, 'sealed'));
    chmodSync(join(dataDir, 'sealed'), 0o500);
    const script = `
      import { openEngine } from ${JSON.stringify(ENGINE)};
      if (process.getuid() === 0) { process.setgid(65534); process.setuid(65534); }
      try { openEngine({ dataDir: process.argv[1] }); console.log('opened'); } catch (error) { console.log(error.code); }`;
    chmodSync(dataDir, 0o755);
    expect(runNode(script, join(dataDir, 'sealed'))).toBe('NOT_WRITABLE');
    chmodSync(join(dataDir, 'sealed'), 0o700);
  });

  it('says that there is no space, keeps what it has, and goes on when there is space again', async () => {
    // The limit on the size of files stands for a full disk; soft, so that it can be lifted again.
    const script = `
      import { execFileSync } from 'node:child_process';
      import { openEngine, StorageError } from ${JSON.stringify(ENGINE)};
      process.on('SIGXFSZ', () => undefined);
      const limit = (bytes) => execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=' + bytes + ':unlimited']);
      const engine = openEngine({ dataDir: ${JSON.stringify(dataDir)} });
      const items = engine.db('d').collection('c');
      await items.createIndex({ n: 1 });
      limit(700_000);
      let written = 0;
      let failure;
      while (failure === undefined && written < 100_000) {
        try {
          await items.insertOne({ _id: written, n: written, text: 'x'.repeat(500) });
          written++;
        } catch (error) {
          failure = error;
        }
      }
      const readable = await items.countDocuments({ n: { $gte: 0 } });
      limit('unlimited');
      await items.insertOne({ _id: 'after', n: -1 });
      const problems = await engine.verify();
      console.log(JSON.stringify({ code: failure instanceof StorageError && failure.code, written, readable, problems, after: await items.countDocuments() }));
      await engine.close();`;
    const outcome = JSON.parse(runNode(script)) as Record<string, unknown>;
    const written = outcome['written'] as number;
    expect(outcome).toEqual({ code: 'NO_SPACE', written, readable: written, problems: [], after: written + 1 });
    expect(written).toBeGreaterThan(100);
  });

  it('is refused when its last page is missing, unless that was never needed', async () => {
    await fill(1000);
    const used = usedBytes();
    truncateSync(file, used - 4096);
    const code = openingCode();
    expect(statSync(file).size).toBeGreaterThanOrEqual(used);
    expect(['opened', 'TRUNCATED']).toContain(code);
    if (code !== 'opened') return;
    const engine = openEngine({ dataDir });
    await engine.db('d').collection('c').insertOne({ text: 'x' });
    expect(await engine.verify()).toEqual([]);
    await engine.close();
  });

  it('is copied consistently while writing goes on', async () => {
    const engine = openEngine({ dataDir });
    const items = engine.db('d').collection('c');
    await items.createIndex({ n: 1 }, { unique: true });
    await items.insertMany(Array.from({ length: 20_000 }, (_, n) => ({ n, text: 'x'.repeat(100) })));
    let writing = true;
    const writer = (async () => {
      for (let n = 20_000; writing; n++) await items.insertOne({ n });
    })();
    const copyDir = join(dataDir, 'copy');
    mkdirSync(copyDir);
    await engine.backup(join(copyDir, 'bsvc.mdb'));
    writing = false;
    await writer;
    await engine.close();
    expect(existsSync(join(copyDir, 'bsvc.mdb.part'))).toBe(false);
    const copy = openEngine({ dataDir: copyDir });
    expect(await copy.verify()).toEqual([]);
    expect(await copy.db('d').collection('c').countDocuments()).toBeGreaterThanOrEqual(20_000);
    await copy.close();
  });

  it('gives the space of a dropped collection to new documents', async () => {
    const engine = openEngine({ dataDir, durability: 'relaxed' });
    const db = engine.db('d');
    const round = async (n: number): Promise<number> => {
      const items = db.collection(`c${n}`);
      await items.createIndex({ k: 1 });
      await items.insertMany(Array.from({ length: 5000 }, (_, k) => ({ k, text: 'x'.repeat(300) })));
      await items.drop();
      await eventually('its space is free', () => engine.stats().freeBytes > 1_000_000);
      return engine.stats().fileBytes;
    };
    const first = await round(1);
    for (let n = 2; n < 6; n++) await round(n);
    expect(engine.stats().fileBytes).toBeLessThan(first * 2);
    await engine.close();
  });

  function runNode(script: string, ...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '-e', script, ...args],
      { encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`the script ended with ${String(status)}: ${stderr}`);
    return stdout.trim();
  }
});
