import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError, loadConfig, SETTINGS, type SettingName } from '../src/config/config.js';
import { openTempDir } from './helpers/temp-dir.js';

const { path: dir, remove } = await openTempDir();
afterAll(remove);

const load = (values: Record<string, string>) => loadConfig([{ source: 'environment', values }]);
const problemsOf = (values: Record<string, string>): string[] => {
  try {
    load(values);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

const SECRETS = Object.entries(SETTINGS).filter(([, setting]) => 'secret' in setting && setting.secret);
/** A value that the setting takes. */
const GOOD: Record<string, string> = {
  MONGODB_URI: 'mongodb://user:canary@db.example:27017',
  REDIS_URL: 'rediss://:canary@cache.example:6380',
  BSVC_SMTP_URL: 'smtps://user:canary@mail.example:465',
};
const goodFor = (env: string): string => GOOD[env] ?? 'canary-of-a-secret';

describe('a secret from a file', () => {
  it('is possible for every secret there is', () => {
    expect(SECRETS.map(([, { env }]) => env).sort()).toEqual([
      'BSVC_ADMIN_TOKEN',
      'BSVC_BACKUP_PASSPHRASE',
      'BSVC_S3_SECRET_ACCESS_KEY',
      'BSVC_SECRET_KEY',
      'BSVC_SMTP_URL',
      'MONGODB_URI',
      'PROVIDER_WEBHOOK_SECRET',
      'REDIS_URL',
      'RESEND_API_KEY',
    ]);
  });

  it.each(SECRETS)('is read for %s, without the line break that editors leave', (name, { env }) => {
    const file = join(dir, env);
    writeFileSync(file, `${goodFor(env)}\n`);
    const { config, sources } = load({ [`${env}_FILE`]: file });
    expect(config[name as SettingName]).toBe(goodFor(env));
    expect(sources.find((source) => source.name === name)?.source).toBe(`environment (${env}_FILE)`);
  });

  it('gives way to the value itself, and to a layer above', () => {
    const file = join(dir, 'token');
    writeFileSync(file, 'from-the-file');
    const both = { BSVC_ADMIN_TOKEN: 'itself', BSVC_ADMIN_TOKEN_FILE: file };
    expect(load(both).config.adminToken).toBe('itself');
    const above = { source: '.env', values: both };
    const layers = [{ source: 'environment', values: { BSVC_ADMIN_TOKEN_FILE: file } }, above];
    expect(loadConfig(layers).config.adminToken).toBe('from-the-file');
  });

  it('that cannot be read is a problem that names the setting and the file', () => {
    const file = join(dir, 'missing');
    expect(problemsOf({ BSVC_SECRET_KEY_FILE: file })).toEqual([
      `BSVC_SECRET_KEY_FILE names ${file}, which cannot be read`,
    ]);
  });

  it('is not offered for what is no secret', () => {
    const file = join(dir, 'port');
    writeFileSync(file, '80');
    expect(load({ BSVC_PORT_FILE: file }).config.port).toBe(4000);
  });
});

describe('the database of a MongoDB', () => {
  it.each([
    ['mongodb://h:27017/shop', undefined, 'shop'],
    ['mongodb+srv://user:p%40ss@h.example/a%20b?retryWrites=true', undefined, 'a b'],
    ['mongodb://%2Ftmp%2Fdb.sock/shop', undefined, 'shop'],
    ['mongodb://h1:1,h2:2/?replicaSet=r', undefined, 'bsvc'],
    ['mongodb://h', 'mine', 'mine'],
    ['mongodb://user:pw@h/admin', undefined, 'bsvc'],
  ])('is what the path of its address says, else the setting: %s with %s', (uri, name, expected) => {
    const { config } = load({ MONGODB_URI: uri, BSVC_MONGODB_DB: name ?? '' });
    expect(config.mongodbName).toBe(expected);
  });
});

describe('wrong settings', () => {
  it('are all told at once', () => {
    const problems = problemsOf({ BSVC_PORT: '-1', BSVC_RATE_LIMIT: 'many', MONGODB_URI: 'canary' });
    expect(problems.map((problem) => problem.split(' ')[0]).sort()).toEqual([
      'BSVC_PORT',
      'BSVC_RATE_LIMIT',
      'MONGODB_URI',
    ]);
  });

  it.each([
    ['BSVC_RATE_LIMIT', '100/0s', 'must count within some time, as in 100/15m'],
    ['BSVC_SHUTDOWN_GRACE', '25d', 'must be from 0s to 24d'],
    ['BSVC_REQUEST_TIMEOUT', '99ms', 'must be from 100ms to 24d'],
    ['BSVC_REFRESH_TOKEN_TTL', '0s', 'must be from 1s to 36500d'],
    ['BSVC_PUBLIC_URL', 'ftp://api.example', 'must be an http(s) address'],
    ['BSVC_PUBLIC_URL', 'https://api.example/?a=b', 'must be an http(s) address without ? and #'],
    ['REDIS_URL', 'redis://', 'must start with redis:// or rediss://'],
    ['REDIS_URL', 'redis://a:6379,b:6379', 'must name one host, as in redis://user:password@host:6379'],
    ['BSVC_SMTP_URL', 'mail.example', 'must start with smtp:// or smtps://'],
  ])('are those that could not be kept: %s=%s', (env, value, why) => {
    expect(problemsOf({ [env]: value })).toEqual([expect.stringContaining(`${env} ${why}`)]);
  });

  it('are a mail provider without what it needs', () => {
    expect(problemsOf({ BSVC_MAIL_PROVIDER: 'resend' })).toEqual([
      'BSVC_MAIL_PROVIDER is resend, but RESEND_API_KEY is not set',
    ]);
    expect(problemsOf({ BSVC_MAIL_PROVIDER: 'smtp', RESEND_API_KEY: 're_1' })).toEqual([
      'BSVC_MAIL_PROVIDER is smtp, but BSVC_SMTP_URL is not set',
    ]);
    expect(problemsOf({ BSVC_MAIL_PROVIDER: 'smtp', BSVC_SMTP_URL: GOOD.BSVC_SMTP_URL! })).toEqual([]);
  });

  it('are two names for one database', () => {
    const uri = 'mongodb://user:canary@db.example:27017/shop?authSource=admin';
    expect(problemsOf({ MONGODB_URI: uri, BSVC_MONGODB_DB: 'other' })).toEqual([
      'BSVC_MONGODB_DB is other, but the path of MONGODB_URI names the database shop: leave one of them out',
    ]);
    expect(problemsOf({ MONGODB_URI: uri, BSVC_MONGODB_DB: 'shop' })).toEqual([]);
  });

  it.each(['MONGODB_URI', 'REDIS_URL', 'BSVC_SMTP_URL'])('never show a secret: %s', (env) => {
    expect(problemsOf({ [env]: 'canary' }).join()).toMatch(new RegExp(`^${env} (?!.*canary)`));
  });
});
