import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { App } from '../world/app.js';
import { withAuditEntry } from '../world/operators.js';
import { beginRestore, collectionStore } from '../world/stored.js';
import { openCliHome } from '../helpers/run-cli.js';
import { openS3Double, s3Settings } from '../helpers/s3-double.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const HOUR_MS = 3_600_000;
const NOBODY = '127.0.0.1:1';
const SOME_KEY = 'some-key-that-is-long-enough-for-anybody';

const home = use(openCliHome());
const whole = join(home.dir, 'whole');
const dir = join(home.dir, 'tried');

const bucket = use(await openS3Double());
await home.bsvc(['project', 'create', 'shop', '--data-dir', whole]);
await home.bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 'a:String&', '--data-dir', whole]);
// The one thing that is encrypted.
const env = { BSVC_DATA_DIR: whole, MAIL_KEY: 're_any' };
await home.bsvc(['byok', 'set', '--project', 'shop', '--mail-key-env', 'MAIL_KEY', '--no-verify'], { env });

type Env = Record<string, string>;
interface Case {
  /** Names of the checks that fail. */
  fails: string[];
  code: 1 | 3;
  /** Spoils the store in `dir`, or answers settings that do. */
  spoil: () => Env | Promise<Env>;
}

const inStore = async (work: (app: App) => Promise<unknown>, aheadMs = 0): Promise<Env> => {
  await withApp({ BSVC_DATA_DIR: dir, BSVC_DURABILITY: 'relaxed' }, work, aheadMs);
  return {};
};
const s3 = (endpoint: string, secretAccessKey: string): Env =>
  s3Settings({ ...bucket.access, endpoint, secretAccessKey });

/** 3: somebody else cannot be reached; 1: what is to be put right here. Mail is 1: it waits in its queue. */
const CASES: Record<string, Case> = {
  'a setting that is wrong': { fails: ['settings'], code: 1, spoil: () => ({ BSVC_PORT: 'http' }) },
  'a MongoDB without BSVC_SECRET_KEY': {
    fails: ['settings'],
    code: 1,
    spoil: () => ({ MONGODB_URI: `mongodb://${NOBODY}` }),
  },
  'an address of a MongoDB that is none': {
    fails: ['database'],
    code: 1,
    spoil: () => ({ MONGODB_URI: 'mongodb://a:b:c@@x', BSVC_SECRET_KEY: SOME_KEY }),
  },
  'a MongoDB that does not answer': {
    fails: ['database'],
    code: 3,
    spoil: () => ({ MONGODB_URI: `mongodb://${NOBODY}`, BSVC_SECRET_KEY: SOME_KEY }),
  },
  'a data directory open to others': {
    fails: ['data directory'],
    code: 1,
    spoil: () => (chmodSync(dir, 0o755), {}),
  },
  'a data directory below a file': {
    fails: ['data directory'],
    code: 1,
    spoil: () => (writeFileSync(join(home.dir, 'file'), ''), { BSVC_DATA_DIR: join(home.dir, 'file', 'a', 'b') }),
  },
  'a restore that has not ended': { fails: ['database'], code: 1, spoil: () => inStore((app) => beginRestore(app.db)) },
  'another master key': { fails: ['master key'], code: 1, spoil: () => ({ BSVC_SECRET_KEY: SOME_KEY }) },
  'no master key': { fails: ['master key'], code: 1, spoil: () => (rmSync(join(dir, 'secret.key')), {}) },
  'a store of a newer version': {
    fails: ['migrations'],
    code: 1,
    spoil: () => {
      const newer = { _id: '999-of-the-future', appliedAt: new Date() };
      return inStore((app) => app.db.collection<typeof newer>('migrations').insertOne(newer));
    },
  },
  'an index that is missing': {
    fails: ['indexes'],
    code: 1,
    spoil: () =>
      inStore(async ({ db }) => {
        const [name] = (await db.listNames()).filter((each) => each.startsWith('documents_'));
        const unique = (await db.collection(name!).indexes()).find((index) => index.unique)!;
        await db.collection(name!).dropIndex(unique.name!);
      }),
  },
  'a rule that names no field': {
    fails: ['indexes', 'rules'],
    code: 1,
    spoil: () =>
      inStore((app) => {
        const rules = { read: 'doc.gone = user.id', create: 'nobody', update: 'nobody', delete: 'nobody' };
        return collectionStore(app).updateOne({ name: 'posts' }, { $set: { rules } });
      }),
  },
  'a clock that stands before what is stored': {
    fails: ['clock'],
    code: 1,
    spoil: () =>
      inStore((app) => withAuditEntry(app, { actor: 'a', action: 'b', input: {} }, () => Promise.resolve()), HOUR_MS),
  },
  'cookies that do not count': {
    fails: ['cross-site cookies'],
    code: 1,
    spoil: () => ({ BSVC_CROSS_SITE_COOKIES: 'true' }),
  },
  'no backup where there should be one': {
    fails: ['backups'],
    code: 1,
    spoil: () => ({ BSVC_BACKUP_TO: join(home.dir, 'backups') }),
  },
  'a cache that does not answer': { fails: ['cache'], code: 3, spoil: () => ({ REDIS_URL: `redis://${NOBODY}` }) },
  'a mail server that does not answer': {
    fails: ['mail'],
    code: 1,
    spoil: () => ({ BSVC_SMTP_URL: `smtp://${NOBODY}` }),
  },
  'a wire address that is none': {
    fails: ['wire protocol'],
    code: 1,
    spoil: () => ({ BSVC_ENGINE_LISTEN: 'nowhere' }),
  },
  'a bucket that does not answer': { fails: ['bucket: put'], code: 3, spoil: () => s3(`http://${NOBODY}`, 'any') },
  'a bucket that refuses': { fails: ['bucket: put'], code: 1, spoil: () => s3(bucket.url, 'wrong') },
  'a cache away beside what is to be put right here': {
    fails: ['cache', 'wire protocol'],
    code: 3,
    spoil: () => ({ REDIS_URL: `redis://${NOBODY}`, BSVC_ENGINE_LISTEN: 'nowhere' }),
  },
};

/** A stopped process (`watch-snapshots`), damaged content (`damage`) and a wrong counter (`upkeep`) make these fail. */
const ELSEWHERE = ['data file', 'damage', 'storage'];

describe('bsvc doctor', () => {
  it('is seen here with every check failing that can', () => {
    const folder = join(import.meta.dirname, '..', '..', 'cli', 'doctor');
    const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const named = texts.flatMap((text) =>
      [...text.matchAll(/\b(?:failed|unreachable)\)?\(\s*'([^']+)'/g)].map(([, name]) => name!),
    );
    const tried = Object.values(CASES).flatMap(({ fails }) => fails.filter((name) => !name.startsWith('bucket')));
    expect([...new Set([...tried, ...ELSEWHERE])].toSorted()).toEqual([...new Set(named)].toSorted());
  });

  it.each(Object.entries(CASES))('%s', async (_what, { fails, code, spoil }) => {
    rmSync(dir, { recursive: true, force: true });
    cpSync(whole, dir, { recursive: true });
    chmodSync(dir, 0o700);
    const env = { BSVC_DATA_DIR: dir, ...(await spoil()) };
    const outcome = await home.bsvc(['doctor', '--json'], { env });
    const { ok, checks } = outcome.json<{
      ok: boolean;
      checks: { name: string; ok: boolean; hint: string | null }[];
    }>();
    const failing = checks.filter((check) => !check.ok);
    expect({ code: outcome.code, ok, fails: failing.map(({ name }) => name) }).toEqual({ code, ok: false, fails });
    for (const { name, hint } of failing) expect({ name, hint }).toEqual({ name, hint: expect.any(String) as string });
    expect(JSON.parse(outcome.stderr.trim().split('\n').at(-1)!)).toMatchObject({ success: false, code: 'UNHEALTHY' });
  });
});
