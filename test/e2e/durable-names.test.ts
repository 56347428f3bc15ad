import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runBinary, startService } from '../helpers/run-binary.js';
import { openStorageClient, putSigned } from '../helpers/storage-client.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

/** They are made anew, or mean nothing after a power cut. */
const PASSING =
  /^(bsvc\.mdb-lock|damage-met|reserve|(open|looking)\.\d+\.\d*|\d+|wire\.sock|incoming|serving|.*\.part)$/;

let dir: TempDir;
let root: string;
let library: string;
const compiled = (() => {
  const probe = spawnSync('cc', ['--version'], { encoding: 'utf8' });
  return process.platform === 'linux' && probe.status === 0;
})();
if (!compiled) console.log('Calls are not traced: there is no compiler');

/**
 * A file survives a power cut when its content was synced, and after it got its name the directory was. Whatever a
 * command or a server leaves behind once it has said that it is done has to.
 */
describe.skipIf(!compiled)('files that a command or a reply has promised', () => {
  beforeAll(async () => {
    dir = await openTempDir();
    root = realpathSync(dir.path);
    library = join(root, 'journal-names.so');
    const source = join(import.meta.dirname, 'journal-names.c');
    const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
  });
  afterAll(() => dir.remove());

  const traced = (name: string) => ({
    BSVC_DATA_DIR: join(root, 'home', 'data'),
    BSVC_LOG_LEVEL: 'error',
    LD_PRELOAD: library,
    NAMES_JOURNAL: join(root, `${name}.journal`),
  });

  it('survive a power cut right after: a new store, uploads, exports, backups, restores', async () => {
    const problems: string[] = [];
    const run = async (name: string, argv: string[], env: Record<string, string> = {}): Promise<string> => {
      const { code, stdout, stderr } = await runBinary(argv, { env: { ...traced(name), ...env }, cwd: root });
      expect([code, stderr], name).toEqual([0, expect.any(String)]);
      problems.push(...findUnsynced(name));
      return stdout;
    };
    const made = await run('project', ['project', 'create', 'shop', '--json']);
    const { secret } = (JSON.parse(made) as { keys: { secret: string } }).keys;
    await run('collection', ['collection', 'add', 'posts', '--project', 'shop', '--field', 'title:String']);
    await run('export', ['data', 'export', 'posts', '--project', 'shop', '--out', join(root, 'posts.json')]);

    const service = await startService(['serve', '--port', '0'], traced('serve'));
    const storage = openStorageClient({ url: service.ready.url }, secret);
    expect((await storage.upload('bytes', 'a.txt', 'text/plain')).status).toBe(201);
    const grant = (await storage.request({ filename: 'b.txt', contentType: 'text/plain', size: 5 })).body;
    expect((await putSigned(grant.signedUrl, 'bytes', 'text/plain')).status).toBe(200);
    problems.push(...findUnsynced('serve'));
    await service.stop('SIGKILL');

    await run('backup', ['backup', '--out', join(root, 'one.backup')]);
    await run('kept', ['backup', '--to', join(root, 'deep', 'kept')]);
    await run('restore', ['restore', join(root, 'one.backup')], { BSVC_DATA_DIR: join(root, 'other', 'data') });
    expect(problems).toEqual([]);
  });

  /** What the journal leaves of files that are there now and would not be after a power cut. */
  function findUnsynced(name: string): string[] {
    const path = join(root, `${name}.journal`);
    const events = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t') as [string, string, string]);
    rmSync(path);
    const there = new Set(listAll(root));
    const lastSync = new Map<string, number>();
    for (const [n, [kind, first]] of events.entries()) if (kind === 'S') lastSync.set(first, n);
    const isSyncedAfter = (path: string, n: number): boolean => (lastSync.get(path) ?? -1) > n;
    const problems = new Set<string>();
    for (const [n, [kind, first, second]] of events.entries()) {
      const target = kind === 'R' ? second : first;
      if (kind === 'S' || !there.has(target) || !target.startsWith(`${root}/`)) continue;
      if (!isSyncedAfter(dirname(target), n)) problems.add(`${name}: the name of ${target}`);
      // Under the name that it had then.
      const isContentSynced = events.some(
        ([each, of], m) => each === 'S' && (of === first || (of === target && m > n)),
      );
      if (kind !== 'M' && !isContentSynced) problems.add(`${name}: the content of ${target}`);
    }
    return [...problems];
  }

  function listAll(folder: string): string[] {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (PASSING.test(basename(path)) || /\.(journal|so)$/.test(path)) return [];
      return entry.isDirectory() ? [path, ...listAll(path)] : [path];
    });
  }
});
