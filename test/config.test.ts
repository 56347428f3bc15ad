import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError, loadConfig, type SettingName } from '../src/config/config.js';
import { SETTINGS } from '../src/config/settings.js';
import { databaseInAddress } from '../src/config/setting-readers.js';
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
  BSVC_S3_URL: 's3://id:canary@s3.example/uploads',
};
const goodFor = (env: string): string => GOOD[env] ?? 'canary-of-a-secret';

describe('a secret from a file', () => {
  it('is possible for every secret there is', () => {
    expect(SECRETS.map(([, { env }]) => env).sort()).toEqual([
      'BSVC_ADMIN_TOKEN',
      'BSVC_BACKUP_PASSPHRASE',
      'BSVC_S3_URL',
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
    expect(config[name as SettingName]).toEqual(load({ [env]: goodFor(env) }).config[name as SettingName]);
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
    ['mongodb://h:27017/shop', 'shop'],
    ['mongodb+srv://user:p%40ss@h.example/a%20b?retryWrites=true', 'a b'],
    ['mongodb://%2Ftmp%2Fdb.sock/shop', 'shop'],
    ['mongodb://h1:1,h2:2/?replicaSet=r', 'bsvc'],
    ['mongodb://h', 'bsvc'],
    ['mongodb://user:pw@h/admin', 'bsvc'],
  ])('is named by the path of its address: %s', (uri, expected) => {
    expect(databaseInAddress(uri)).toBe(expected);
  });
});

describe('the port', () => {
  it('is PORT of the environment where a platform sets it, and BSVC_PORT before that', () => {
    expect(load({ PORT: '8080' })).toMatchObject({ config: { port: 8080 } });
    expect(load({ PORT: '8080' }).sources.find(({ name }) => name === 'port')!.source).toBe('environment (PORT)');
    expect(load({ PORT: '8080', BSVC_PORT: '4001' }).config.port).toBe(4001);
    expect(problemsOf({ PORT: 'http' })).toEqual([expect.stringContaining('"http"')]);
    // In a file it is another program's.
    expect(loadConfig([{ source: '.env', values: { PORT: '8080' } }]).config.port).toBe(4000);
  });
});

describe('the address of a bucket', () => {
  const s3 = (url: string) => load({ BSVC_S3_URL: url }).config.s3;

  it('has key, secret, host, bucket and options in it', () => {
    expect(s3('s3://id:a%2Fb%2Bc@r2.example/uploads?region=auto&public=https://files.example/')).toEqual({
      endpoint: 'https://r2.example',
      region: 'auto',
      bucket: 'uploads',
      accessKeyId: 'id',
      secretAccessKey: 'a/b+c',
      publicUrl: 'https://files.example',
      forcePathStyle: false,
    });
    const local = { endpoint: 'http://127.0.0.1:9000', bucket: 'uploads', forcePathStyle: true };
    expect(s3('s3+http://id:key@127.0.0.1:9000/uploads?path-style=true')).toMatchObject(local);
  });

  it('is AWS’s own by its general host, and an account alone without a bucket', () => {
    const account = { endpoint: null, region: 'eu-central-1', bucket: null };
    expect(s3('s3://id:key@s3.amazonaws.com?region=eu-central-1')).toMatchObject(account);
  });

  it('has no key where the role of the machine is to be used', () => {
    expect(s3('s3://s3.amazonaws.com/uploads')).toMatchObject({ accessKeyId: null, secretAccessKey: null });
  });

  it.each([
    's3://id@host/bucket',
    's3://:key@host/bucket',
    'https://id:key@host/bucket',
    's3://id:a/b@host/bucket',
    's3://id:key@host/a/b',
    's3://id:key@host/a?zone=b',
  ])('is refused: %s', (url) => {
    expect(problemsOf({ BSVC_S3_URL: url })).toEqual([
      expect.stringMatching(/^BSVC_S3_URL (must be s3:|has the option zone)/),
    ]);
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
    ['BSVC_DRAIN', '25d', 'must be from 0s to 24d'],
    ['BSVC_WATCHDOG', '999ms', 'must be from 1s to 24d, or off'],
    ['BSVC_MEMORY', '127mb', 'must be 128mb or more'],
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

  it.each(['MONGODB_URI', 'REDIS_URL', 'BSVC_SMTP_URL', 'BSVC_S3_URL'])('never show a secret: %s', (env) => {
    expect(problemsOf({ [env]: 'canary' }).join()).toMatch(new RegExp(`^${env} (?!.*canary)`));
  });
});
