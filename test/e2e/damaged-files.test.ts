import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { migrate } from '../world/app.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { openRandom } from '../helpers/random.js';
import { runBinary, startService } from '../helpers/run-binary.js';
import { openSeed } from '../helpers/seed.js';
import { openStorageClient, putSigned } from '../helpers/storage-client.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const FILES = 24;
const SEED = openSeed('damaged files');
const random = openRandom(SEED);

interface Uploaded {
  path: string;
  url: string;
  bytes: Buffer;
  /** In the data directory. */
  file: string;
}

let owner: TestProject;
const files: Uploaded[] = [];
const damaged = new Map<Uploaded, { what: string; at: number }>();

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_LOG_LEVEL: 'error',
  BSVC_DURABILITY: 'relaxed',
};
await withApp(env, async (app) => {
  await migrate(app.db);
  owner = await buildProject(app);
});
const service = use(await startService(['serve', '--port', '0'], env));
for (let n = 0; n < FILES; n++) files.push(await upload(n));

/** Of sizes around the ends of blocks, by both ways of uploading. */
async function upload(n: number): Promise<Uploaded> {
  const size = [1, 65_535, 65_536, 65_537, 131_072, 1 + random.below(400_000)][n % 6]!;
  const bytes = Buffer.from(Array.from({ length: size }, () => random.below(256)));
  const storage = openStorageClient({ url: service.ready.url }, owner.secret);
  let path: string;
  let url: string | null;
  if (n % 2 === 0) {
    ({ path, url } = (await storage.upload(bytes, `${n}.png`)).body);
  } else {
    const { signedUrl, filePath } = (await storage.request({ filename: 'a.png', contentType: 'image/png', size })).body;
    expect((await putSigned(signedUrl, bytes, 'image/png')).status).toBe(200);
    ({ path, url } = (await storage.confirm({ filePath, size })).body);
  }
  const stored = (await findStored(path))!;
  return { path, url: url!, bytes, file: stored };
}

async function findStored(path: string): Promise<string | null> {
  const folder = join(env.BSVC_DATA_DIR!, 'files', dirname(path));
  const name = (await readdir(folder)).find((each) => each.startsWith(path.split('/')[1]!));
  return name === undefined ? null : join(folder, name);
}

/** What a client gets: the whole bytes that were asked for, an error, or less than was promised. */
async function read(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const reply = await fetch(url, { method, headers });
  const body = await reply.arrayBuffer().then(
    (bytes) => Buffer.from(bytes),
    () => null,
  );
  return { status: reply.status, body };
}

/** Damages a file and returns the first byte that is not as it was. */
async function damage({ file, bytes }: Uploaded): Promise<{ what: string; at: number }> {
  const at = random.below(bytes.length);
  const what = random.pick(['flipped', 'cut', 'longer', 'missing', 'other']);
  if (what === 'flipped') {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1 << random.below(8);
    await writeFile(file, changed);
    return { what, at };
  }
  if (what === 'missing') await rm(file);
  else if (what === 'cut') await writeFile(file, bytes.subarray(0, at));
  else if (what === 'longer') await writeFile(file, Buffer.concat([bytes, Buffer.from('x')]));
  else await writeFile(file, Buffer.from(bytes.map((byte) => byte ^ 0xff)));
  return { what, at: 0 };
}

describe('uploaded files that are not as they were stored', () => {
  it('are whole before: reads, doctor and backup say so', async () => {
    for (const { url, bytes } of files) {
      const { status, body } = await read(url);
      expect([status, body?.equals(bytes)]).toEqual([200, true]);
    }
    const doctor = await runBinary(['doctor', '--deep', '--json'], { env });
    expect(checkOf(doctor.stdout)).toMatchObject({ ok: true });
    const made = await runBinary(['backup', '--out', join(dir.path, 'whole.backup'), '--json'], { env });
    expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { files: FILES, damagedFiles: 0 }]);
  });

  it('are never served: errors or broken bodies instead, for all of a file and for parts of it', async () => {
    for (const file of files.filter((_, n) => n % 3 !== 0)) damaged.set(file, await damage(file));
    for (const file of files) {
      const { url, bytes } = file;
      const found = damaged.get(file);
      const from = found?.at ?? random.below(bytes.length);
      const range = { range: `bytes=${Math.max(0, from - random.below(10))}-${from}` };
      const answers = { all: await read(url), range: await read(url, range), head: await read(url, {}, 'HEAD') };
      const what = JSON.stringify({ ...found, size: bytes.length, seed: SEED });
      if (!found) {
        expect([answers.all.body?.equals(bytes), answers.range.status, answers.head.status], what).toEqual([
          true,
          206,
          200,
        ]);
        continue;
      }
      for (const { status, body } of [answers.all, answers.range])
        expect(status === 500 || body === null, what).toBe(true);
      // Its first block is what it looks at, with the size.
      if (found.at < 65_536) expect(answers.head.status, what).toBe(500);
    }
    await expect.poll(() => service.stderr() + service.stdout()).toContain('an uploaded file is damaged');
  });

  it('are named by doctor --deep, exit 1', async () => {
    const doctor = await runBinary(['doctor', '--deep', '--json'], { env });
    expect(doctor.code).toBe(1);
    const { detail, ok } = checkOf(doctor.stdout)!;
    expect(ok).toBe(false);
    for (const { path } of damaged.keys()) expect(detail).toContain(path);
    for (const file of files) if (!damaged.has(file)) expect(detail).not.toContain(file.path);
  });

  it('are named by a backup, which is made and exits with 1 unless told otherwise', async () => {
    const out = join(dir.path, 'damaged.backup');
    const made = await runBinary(['backup', '--out', out, '--json'], { env });
    const report = JSON.parse(made.stdout) as { damagedFiles: number; damage: string[] };
    expect([made.code, report.damagedFiles]).toEqual([1, damaged.size]);
    for (const { path } of damaged.keys()) expect(report.damage.join('\n')).toContain(path);
    const allowed = await runBinary(['backup', '--out', out, '--allow-damaged-files'], { env });
    expect([allowed.code, (await stat(out)).size > 0]).toEqual([0, true]);
  });

  it('are as good as before once their bytes are back', async () => {
    for (const { file, bytes, url } of files) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, bytes);
      expect((await read(url)).body?.equals(bytes)).toBe(true);
    }
    expect(checkOf((await runBinary(['doctor', '--deep', '--json'], { env })).stdout)).toMatchObject({ ok: true });
  });

  it('are noticed when the whole folder is gone', async () => {
    const folder = join(env.BSVC_DATA_DIR!, 'files');
    await rm(folder, { recursive: true });
    expect((await read(files[0]!.url)).status).toBe(500);
    expect(checkOf((await runBinary(['doctor', '--deep', '--json'], { env })).stdout)).toMatchObject({ ok: false });
    const made = await runBinary(['backup', '--out', join(dir.path, 'empty.backup'), '--json'], { env });
    expect([made.code, JSON.parse(made.stdout)]).toMatchObject([1, { files: 0, damagedFiles: FILES }]);
  });
});

function checkOf(stdout: string): { ok: boolean; detail: string } | undefined {
  const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; detail: string }[] };
  return checks.find(({ name }) => name === 'files');
}
