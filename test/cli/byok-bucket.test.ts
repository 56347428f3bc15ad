import { describe, expect, it } from 'vitest';
import { openCliHome, type CliOutcome } from '../helpers/run-cli.js';
import { openS3Double, s3Settings } from '../helpers/s3-double.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const DEVELOPMENT = { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_PROJECT: 'shop' };

const double = use(await openS3Double());
await home.bsvc(['project', 'create', 'shop']);

const bucket = (words: string[], env: Record<string, string> = DEVELOPMENT, stdin?: string): Promise<CliOutcome> =>
  home.bsvc(['byok', 'bucket', ...words], { env, ...(stdin !== undefined && { stdin }) });

function setWords(more: string[] = []): string[] {
  const { bucket: name, region, accessKeyId, publicUrl } = double.access;
  const place = ['--bucket', name, '--region', region, '--access-key-id', accessKeyId, '--public-url', publicUrl!];
  return ['set', ...place, '--path-style', '--secret-access-key-stdin', ...more];
}

describe('bsvc byok bucket', () => {
  it('refuses an endpoint that is not public with exit 1, and nothing is stored or sent', async () => {
    const env = { BSVC_PROJECT: 'shop' };
    for (const endpoint of [
      'https://127.0.0.1:9000',
      'https://169.254.169.254',
      'https://[::ffff:10.0.0.1]',
      double.url,
    ]) {
      const { code, stderr } = await bucket(setWords(['--endpoint', endpoint]), env, double.access.secretAccessKey);
      expect({ endpoint, code }).toEqual({ endpoint, code: 1 });
      expect(stderr).toMatch(/not a public address|https:\/\//);
    }
    expect(double.requests).toEqual([]);
    expect((await bucket(['show', '--json'])).json()).toEqual({ bucket: null });
  });

  it('tries the bucket first: wrong keys are exit 1 and change nothing', async () => {
    const { code, stderr } = await bucket(setWords(['--endpoint', double.url]), DEVELOPMENT, 'wrong');
    expect(code).toBe(1);
    expect(stderr).toContain('SignatureDoesNotMatch');
    expect((await bucket(['show', '--json'])).json()).toEqual({ bucket: null });
  });

  it('is exit 3 where nobody answers, for set, check and the doctor', async () => {
    const nobody = 'http://127.0.0.1:1';
    const away = await bucket(setWords(['--endpoint', nobody]), DEVELOPMENT, 'any');
    expect({ code: away.code, stderr: away.stderr }).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('cannot be reached (ECONNREFUSED)') as string,
    });
    expect((await bucket(setWords(['--endpoint', nobody, '--no-verify']), DEVELOPMENT, 'any')).code).toBe(0);
    const checked = await bucket(['show', '--check', '--json']);
    expect({ code: checked.code, json: checked.json() }).toMatchObject({
      code: 3,
      json: { ok: false, checks: [{ name: 'put', ok: false }] },
    });
    expect((await bucket(['clear', '--yes'])).code).toBe(0);
    const env = s3Settings({ ...double.access, endpoint: nobody });
    const doctor = await home.bsvc(['doctor', '--json'], { env });
    expect(doctor.code).toBe(3);
    const { checks } = doctor.json<{ checks: { name: string; ok: boolean }[] }>();
    expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['bucket: put']);
    expect(Object.keys(checks.at(-1)!)).toEqual(['name', 'ok', 'detail', 'hint']);
  });

  it('stores the bucket, shows it masked, and leaves nothing in it', async () => {
    const set = await bucket(
      setWords(['--endpoint', double.url, '--json']),
      DEVELOPMENT,
      double.access.secretAccessKey,
    );
    expect(set.stderr).toBe('');
    expect(set.json()).toMatchObject({
      bucket: 'uploads',
      secretAccessKey: '********',
      publicUrl: `${double.url}/uploads`,
    });
    expect(double.objects.size).toBe(0);
    const shown = await bucket(['show']);
    expect(shown.stdout).toContain('uploads');
    expect(shown.stdout).not.toContain(double.access.secretAccessKey);
  });

  it('stores without trying when told so', async () => {
    const before = double.requests.length;
    const { code } = await bucket(setWords(['--endpoint', double.url, '--no-verify']), DEVELOPMENT, 'wrong');
    expect({ code, requests: double.requests.length }).toEqual({ code: 0, requests: before });
    await bucket(setWords(['--endpoint', double.url]), DEVELOPMENT, double.access.secretAccessKey);
  });

  it('checks and sets the CORS rules', async () => {
    const before = await bucket(['show', '--check', '--json']);
    expect(before.code).toBe(1);
    expect(
      before.json<{ ok: boolean; checks: { name: string; ok: boolean }[] }>().checks.map(({ name, ok }) => [name, ok]),
    ).toEqual([
      ['put', true],
      ['head', true],
      ['copy', true],
      ['delete', true],
      ['signed put', true],
      ['attached files', true],
      ['cors', false],
    ]);
    const saidOfAttached = async (): Promise<string> =>
      (await bucket(['show', '--check', '--json']))
        .json<{ checks: { name: string; detail: string }[] }>()
        .checks.find(({ name }) => name === 'attached files')!.detail;
    expect(await saidOfAttached()).toBe('are refused: anybody can read the objects of this bucket');
    double.closeBucket();
    expect(await saidOfAttached()).toBe('the objects cannot be read without a link');
    expect((await bucket(['show', '--fix', '--origin', 'https://shop.example'])).code).toBe(0);
    expect((await bucket(['show', '--check', '--origin', 'https://shop.example'])).code).toBe(0);
    expect((await bucket(['show', '--check', '--origin', 'https://evil.example'])).code).toBe(1);
    expect(double.objects.size).toBe(0);
  });

  it('is exit 1 when it answers and refuses', async () => {
    await bucket(setWords(['--endpoint', double.url, '--no-verify']), DEVELOPMENT, 'wrong');
    const refused = await bucket(['show', '--fix', '--origin', 'https://shop.example']);
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('SignatureDoesNotMatch') as string,
    });
    await bucket(setWords(['--endpoint', double.url]), DEVELOPMENT, double.access.secretAccessKey);
  });

  it('is forgotten with clear', async () => {
    expect((await bucket(['clear', '--yes', '--json'])).json()).toEqual({ bucket: null });
    expect((await bucket(['show', '--check'])).code).toBe(1);
  });
});

describe('bsvc doctor with a bucket in the settings', () => {
  const env = (): Record<string, string> => s3Settings(double.access);
  const bucketChecks = (outcome: CliOutcome): unknown[] =>
    outcome
      .json<{ checks: { name: string; ok: boolean }[] }>()
      .checks.filter(({ name }) => name.startsWith('bucket'))
      .map(({ name, ok }) => [name, ok]);

  it('tries it, says what is wrong, and --fix lets browsers in', async () => {
    double.setCors([]);
    const found = await home.bsvc(['doctor', '--json'], { env: env() });
    expect(found.code).toBe(1);
    expect(bucketChecks(found)).toEqual([
      ['bucket: put', true],
      ['bucket: head', true],
      ['bucket: copy', true],
      ['bucket: delete', true],
      ['bucket: signed put', true],
      ['bucket: attached files', true],
      ['bucket: cors', false],
    ]);
    const fixed = await home.bsvc(['doctor', '--fix', '--json'], { env: env() });
    expect(bucketChecks(fixed)).toContainEqual(['bucket: cors', true]);
  });

  it('names the refusal of the bucket', async () => {
    const wrong = await home.bsvc(['doctor', '--json'], {
      env: s3Settings({ ...double.access, secretAccessKey: 'wrong' }),
    });
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toContain('SignatureDoesNotMatch');
    expect(bucketChecks(wrong)).toEqual([['bucket: put', false]]);
  });

  it('says nothing about a bucket when files are kept in the data directory', async () => {
    expect(bucketChecks(await home.bsvc(['doctor', '--json']))).toEqual([]);
  });
});
