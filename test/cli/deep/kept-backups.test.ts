import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createWorker, findBackupAge } from '../../world/jobs.js';
import { backupName } from '../../../src/features/backups/backup-schedule.js';
import { eventually } from '../../helpers/eventually.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openTestApp } from '../../helpers/open-test-app.js';
import { openCliHome } from '../../helpers/run-cli.js';
import { openS3Double, s3Settings } from '../../helpers/s3-double.js';
import { use } from '../../helpers/use.js';

const home = openCliHome();
const places: ReturnType<typeof openCliHome>[] = [home];

const bucket = use(await openS3Double());
const s3 = s3Settings({ ...bucket.access, bucket: '' });
await home.bsvc(['project', 'create', 'shop']);
await home.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 'title:String!']);
await home.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], {
  stdin: '{"title":"whale"}\n',
});
afterAll(async () => {
  for (const place of places) place.remove();
});

const newHome = () => {
  const made = openCliHome();
  places.push(made);
  return made;
};
const secretKey = (): string => readFileSync(join(home.dir, 'data', 'secret.key'), 'utf8').trim();
const titles = async (from: typeof home): Promise<string> =>
  (await from.bsvc(['data', 'export', 'posts', '--project', 'shop'])).stdout;

describe('bsvc backup --to', () => {
  it('stores an encrypted backup in a directory, which restore finds by its name and by latest', async () => {
    const to = join(home.dir, 'kept');
    const made = await home.bsvc(['backup', '--to', to, '--json']);
    const { file } = made.json<{ file: string }>();
    const stored = readFileSync(join(to, file));
    expect([statSync(join(to, file)).mode & 0o777, stored.includes('whale')]).toEqual([0o600, false]);
    const listed = await home.bsvc(['backup', '--list', '--to', to, '--json']);
    expect(listed.json()).toEqual([{ name: file, at: expect.any(String), bytes: stored.length }]);
    for (const named of [file, 'latest', join(to, file)]) {
      const other = newHome();
      // The key that encrypted it is the one thing that a new machine needs beside the file.
      mkdirSync(join(other.dir, 'data'), { mode: 0o700 });
      writeFileSync(join(other.dir, 'data', 'secret.key'), `${secretKey()}\n`, { mode: 0o600 });
      const restored = await other.bsvc(['restore', named, '--yes'], { env: { BSVC_BACKUP_TO: to } });
      expect([restored.code, restored.stderr]).toEqual([0, expect.any(String)]);
      expect(await titles(other)).toBe(await titles(home));
    }
  });

  it('stores in a bucket, encrypted with a passphrase, and restores from there without the key', async () => {
    const env = { ...s3, BSVC_BACKUP_PASSPHRASE: 'correct horse battery staple' };
    const made = await home.bsvc(['backup', '--to', 's3://uploads/nightly', '--json'], { env });
    const { file } = made.json<{ file: string }>();
    expect([...bucket.objects.keys()]).toEqual([`nightly/${file}`]);
    const other = newHome();
    const address = `s3://uploads/nightly/${file}`;
    const without = await other.bsvc(['restore', address], { env: s3 });
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('BSVC_BACKUP_PASSPHRASE')]);
    expect((await other.bsvc(['restore', address], { env })).code).toBe(0);
    expect(await titles(other)).toBe(await titles(home));
  });

  it('removes what the rule no longer keeps, and no file of somebody else', async () => {
    const to = join(home.dir, 'many');
    mkdirSync(to);
    for (let day = 1; day <= 9; day++) writeFileSync(join(to, backupName(new Date(2020, 0, day, 12))), 'old');
    writeFileSync(join(to, 'notes.txt'), 'mine');
    const made = await home.bsvc(['backup', '--to', to, '--json'], { env: { BSVC_BACKUP_KEEP: '3d' } });
    expect(made.json<{ removed: string[] }>().removed).toHaveLength(7);
    expect(readdirSync(to)).toHaveLength(4);
    expect(readFileSync(join(to, 'notes.txt'), 'utf8')).toBe('mine');
  });

  it('removes nothing when the new one cannot be stored', async () => {
    for (let day = 1; day <= 3; day++)
      bucket.objects.set(`full/${backupName(new Date(2020, 0, day))}`, {
        bytes: Buffer.from('old'),
        contentType: 'x/y',
        disposition: null,
      });
    bucket.failNext(20, 403);
    const env = { ...s3, BSVC_BACKUP_KEEP: '1d' };
    expect((await home.bsvc(['backup', '--to', 's3://uploads/full'], { env })).code).toBe(1);
    bucket.failNext(0, 200);
    expect([...bucket.objects.keys()].filter((key) => key.startsWith('full/'))).toHaveLength(3);
  });

  it('is read back: one that does not come back as it was stored is no backup, and removes no older one', async () => {
    const old = backupName(new Date(2020, 0, 1));
    const kept = { bytes: Buffer.from('old'), contentType: 'x/y', disposition: null };
    bucket.objects.set(`worn/${old}`, kept);
    const { set } = bucket.objects;
    bucket.objects.set = function (key, object) {
      const bytes = Buffer.from(object.bytes);
      bytes[bytes.length >> 1]! ^= 1;
      return set.call(this, key, { ...object, bytes });
    };
    const env = { ...s3, BSVC_BACKUP_KEEP: '1d' };
    const made = await home.bsvc(['backup', '--to', 's3://uploads/worn', '--json'], { env });
    bucket.objects.set = set;
    expect([made.code, made.stdout]).toEqual([1, '']);
    expect([...bucket.objects].filter(([key]) => key.startsWith('worn/'))).toEqual([[`worn/${old}`, kept]]);
    const doctor = await home.bsvc(['doctor', '--json'], { env: { ...s3, BSVC_BACKUP_TO: 's3://uploads/worn' } });
    const { checks } = doctor.json<{ checks: { name: string; ok: boolean }[] }>();
    expect(checks.find(({ name }) => name === 'backups')).toMatchObject({ ok: false });
  });

  it.each([
    ['BSVC_BACKUP_SCHEDULE', 'nightly'],
    ['BSVC_BACKUP_SCHEDULE', '61 3 * * *'],
    ['BSVC_BACKUP_KEEP', 'forever'],
    ['BSVC_BACKUP_KEEP', '0d'],
  ])('refuses %s=%s', async (name, value) => {
    const refused = await home.bsvc(['backup', '--list'], { env: { [name]: value } });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(name)]);
  });
});

describe('BSVC_BACKUP_TO', () => {
  it('makes doctor fail while there is no good backup, and pass once there is one', async () => {
    const env = { BSVC_BACKUP_TO: join(home.dir, 'doctor') };
    const checked = async () =>
      (await home.bsvc(['doctor', '--json'], { env }))
        .json<{ checks: { name: string; ok: boolean; detail: string }[] }>()
        .checks.find(({ name }) => name === 'backups');
    expect(await checked()).toMatchObject({ ok: false, detail: expect.stringContaining('no good one') as string });
    await home.bsvc(['backup', '--to', env.BSVC_BACKUP_TO]);
    expect(await checked()).toMatchObject({ ok: true, detail: expect.stringContaining('0 h old') as string });
  });

  it('has the worker make backups by the schedule, and the metrics tell their age', async () => {
    const to = join(home.dir, 'scheduled');
    const clock = createFakeClock();
    const settings = {
      BSVC_BACKUP_TO: to,
      BSVC_BACKUP_SCHEDULE: '* * * * *',
      BSVC_ADMIN_TOKEN: 'token-for-the-metrics',
    };
    const test = await openTestApp({ settings, clock });
    const worker = createWorker(test.app);
    try {
      clock.advance(61_000);
      await eventually('a backup', () => existsSync(to) && readdirSync(to).some((name) => !name.startsWith('.')));
      const measured = await eventually('its age', async () => {
        const headers = { authorization: `Bearer ${settings.BSVC_ADMIN_TOKEN}` };
        const reply = await fetch(`${test.url}/metrics`, { headers });
        return /backup_age_seconds \d/.exec(await reply.text());
      });
      expect(measured).not.toBeNull();
      clock.advance(4 * 3_600_000);
      expect(await findBackupAge(test.app)).toMatchObject({ isLate: true });
    } finally {
      await worker.stop();
      await test.close();
    }
  });
});
