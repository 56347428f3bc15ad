import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buildProject } from '../../../helpers/build-project.js';
import { eventually } from '../../../helpers/eventually.js';
import { listStoredFiles, openStorageClient } from '../../../helpers/storage-client.js';
import { use } from '../../../helpers/use.js';
import { ADMIN_TOKEN, asSecret, callerWith, fire, openStage, outcomeOf, type Answer } from '../stage.js';

const stage = use(await openStage({ BSVC_MAX_FILE: '100kb' }));
const owner = await buildProject(stage.app);
const call = asSecret(stage, owner);
const storage = openStorageClient(stage, owner.secret);
afterEach(() => call('DELETE', '/api/storage/all'));

const projectId = (): string => owner.project._id.toHexString();
const inForm = (disposition: string, type = 'text/plain', bytes = 'bytes'): string =>
  `--B\r\nContent-Disposition: ${disposition}\r\nContent-Type: ${type}\r\n\r\n${bytes}\r\n--B--\r\n`;
const upload = (form: string, contentType = 'multipart/form-data; boundary=B'): Promise<Answer> =>
  call('POST', '/api/storage/upload', Buffer.from(form, 'latin1'), { 'content-type': contentType });

/**
 * Names that would like to lead somewhere, to be run, or to end a header. All become plain names below the project's
 * own id.
 */
const NAMES = [
  '../../../../etc/passwd',
  '..\\..\\windows\\win.ini',
  '/etc/passwd',
  'C:\\boot.ini',
  '....//....//x',
  '%2e%2e%2fx',
  '..%00/x',
  'a\u0000.png',
  '.htaccess',
  '.',
  '..',
  '',
  ' ',
  'a.png.html',
  'con',
  'a"; filename="evil.html',
  "a'; drop table",
  '<script>alert(1)</script>.png',
  'a\tb',
  '\u202egnp.exe',
  'ａ／..／ｂ',
  '\u2024\u2024/x',
  '😀'.repeat(200),
  '\ufdfa'.repeat(300),
  'a'.repeat(1000),
  '-rf',
  '--help',
  '|id',
  '$(id)',
  '`id`',
  'a;b',
  'documents?x=1#y',
  '*',
];

describe('a file name', () => {
  const KNOWN = new Set(['files', 'incoming', 'reserve']);
  beforeAll(async () => (await readdir(stage.dataDir)).forEach((entry) => KNOWN.add(entry)));
  const SAFE = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

  it.each(NAMES)('%j becomes a plain one, in the project’s own place', async (name) => {
    const quoted = name.replace(/[\\"]/g, '\\$&').replace(/\0/g, '%00');
    const formed = await upload(Buffer.from(inForm(`form-data; name="file"; filename="${quoted}"`)).toString('latin1'));
    const asked = await call('POST', '/api/storage/upload-request', {
      filename: name,
      contentType: 'text/plain',
      size: 5,
    });
    if (name !== '') expect(asked.status).toBe(200);
    const paths: string[] = [];
    if (formed.status === 201) paths.push((JSON.parse(formed.text) as { path: string }).path);
    else expect(outcomeOf(formed)).toBe('400 FILE_MISSING');
    if (asked.status === 200) paths.push((JSON.parse(asked.text) as { filePath: string }).filePath);
    for (const path of paths) {
      const [project, file, ...rest] = path.split('/');
      expect([project, rest]).toEqual([projectId(), []]);
      const [, uuid, safe] = /^([0-9a-f-]{36})_(.+)$/.exec(file!) ?? [];
      expect(uuid).toBeDefined();
      expect(safe).toMatch(SAFE);
      expect(safe).not.toContain('..');
    }
    expect((await readdir(stage.dataDir)).filter((entry) => !KNOWN.has(entry))).toEqual([]);
  });

  it('with a line break ends no header when the file is served', async () => {
    const name = 'a\r\nSet-Cookie: a=b\r\n\r\n<b>.txt';
    const { body } = await storage.request({ filename: name, contentType: 'text/plain', size: 5 });
    await fetch(body.signedUrl, { method: 'PUT', headers: { 'content-type': 'text/plain' }, body: '12345' });
    expect((await storage.confirm({ filePath: body.filePath, size: 5 })).status).toBe(200);
    const served = await fire(stage, { method: 'GET', path: `/files/${body.filePath}` });
    expect(served.headers).not.toHaveProperty('set-cookie');
    expect(served.headers['content-disposition']).toMatch(/^inline; filename="[^"\r\n]+"$/);
  });
});

/** What a part says of its content. Whatever it is, it is no header of the answer and nothing that a browser runs. */
const TYPES = [
  'text/html',
  'text/html; charset=utf-7',
  'TEXT/HTML',
  ' text/html',
  'text/html,image/png',
  'image/png, text/html',
  'image/svg+xml',
  'image/png;text/html',
  'image/png; charset=utf-8; x=<script>',
  'text/xml',
  'application/xml+xhtml',
  'application/x-shockwave-flash',
  'multipart/x-mixed-replace; boundary=B',
  'text/plain\u000bX-Evil: 1',
  'video/../../text/html',
  'audio/html',
  '*/*',
  'text',
  '/',
  'a'.repeat(5000),
];

/** What a browser could run, or split. */
const ACTIVE = /^text\/(?!plain)|^application\/(?!octet-stream|pdf)|svg|multipart|[\r\n<,]/i;

describe('a content type', () => {
  it.each(TYPES)('%j makes no page of a file', async (type) => {
    const html = '<html><script>alert(1)</script></html>';
    const answer = await upload(inForm('form-data; name="file"; filename="a.html"', type, html));
    if (answer.status !== 201) return expect(answer.status).toBe(400);
    const { path } = JSON.parse(answer.text) as { path: string };
    const served = await fire(stage, { method: 'GET', path: `/files/${path}` });
    expect(served.headers['content-type']).not.toMatch(ACTIVE);
    expect(served.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    expect(served.headers).not.toHaveProperty('x-evil');
  });

  it.each(TYPES)('%j is refused for a signed upload, or makes no page of the file', async (contentType) => {
    const asked = await call('POST', '/api/storage/upload-request', { filename: 'a.html', contentType, size: 5 });
    if (asked.status === 400) return;
    const { signedUrl, filePath } = JSON.parse(asked.text) as { signedUrl: string; filePath: string };
    const put = await fetch(signedUrl, { method: 'PUT', headers: { 'content-type': contentType }, body: '<b>x<' });
    expect(put.status).toBe(200);
    await call('POST', '/api/storage/upload-confirm', { filePath, size: 5 });
    const served = await fire(stage, { method: 'GET', path: `/files/${filePath}` });
    expect(served.status).toBe(200);
    expect(served.headers['content-type']).not.toMatch(ACTIVE);
  });
});

const FILE_PART = 'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nbytes\r\n';
const FIELD_PART = 'Content-Disposition: form-data; name="x"\r\n\r\ny\r\n';

/** Forms that cost more than they are worth, or mean two things at once. */
const FORMS: readonly [what: string, outcome: RegExp, form: () => string, contentType?: string][] = [
  ['ten thousand fields', /^400 FILE_MISSING$/, () => `${`--B\r\n${FIELD_PART}`.repeat(10_000)}--B--\r\n`],
  [
    'ten thousand fields before the file',
    /^400 FILE_MISSING$/,
    () => `${`--B\r\n${FIELD_PART}`.repeat(10_000)}--B\r\n${FILE_PART}--B--\r\n`,
  ],
  ['ten thousand files', /^400 INVALID_BODY$/, () => `${`--B\r\n${FILE_PART}`.repeat(10_000)}--B--\r\n`],
  [
    'ten thousand empty parts',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => `${'--B\r\n\r\n\r\n'.repeat(10_000)}--B--\r\n`,
  ],
  ['nothing but boundaries', /^400 (FILE_MISSING|INVALID_BODY)$/, () => `${'--B\r\n'.repeat(100_000)}--B--\r\n`],
  [
    'a field of a megabyte',
    /^400 FILE_MISSING$/,
    () => `--B\r\nContent-Disposition: form-data; name="x"\r\n\r\n${'y'.repeat(2 ** 20)}\r\n--B--\r\n`,
  ],
  [
    'a part with a header of a megabyte',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => `--B\r\nX-A: ${'a'.repeat(2 ** 20)}\r\n${FILE_PART}--B--\r\n`,
  ],
  [
    'a part with a header that never ends',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => `--B\r\nX-A: ${'a'.repeat(2 ** 20)}`,
  ],
  [
    'a part with ten thousand headers',
    /^(201|400 (FILE_MISSING|INVALID_BODY))$/,
    () => `--B\r\n${'X-A: b\r\n'.repeat(10_000)}${FILE_PART}--B--\r\n`,
  ],
  [
    'a field name of a megabyte',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => `--B\r\nContent-Disposition: form-data; name="${'x'.repeat(2 ** 20)}"\r\n\r\ny\r\n--B--\r\n`,
  ],
  ['a file in the field __proto__', /^400 FILE_MISSING$/, () => inForm('form-data; name="__proto__"; filename="a"')],
  ['a file in the field file[]', /^400 FILE_MISSING$/, () => inForm('form-data; name="file[]"; filename="a"')],
  ['a text in the field file', /^400 FILE_MISSING$/, () => inForm('form-data; name="file"', 'text/x')],
  ['a part of another kind', /^400 FILE_MISSING$/, () => inForm('attachment; name="file"; filename="a"')],
  [
    'a form inside the form',
    /^(201|400 FILE_MISSING)$/,
    () => inForm('form-data; name="file"; filename="a"', 'multipart/mixed; boundary=C', `--C\r\n${FILE_PART}--C--`),
  ],
  ['no boundary', /^400 FILE_MISSING$/, () => inForm('form-data; name="file"; filename="a"'), 'multipart/form-data'],
  [
    'an empty boundary',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => inForm('form-data; name="file"; filename="a"'),
    'multipart/form-data; boundary=',
  ],
  [
    'two boundaries',
    /^(201|400 (FILE_MISSING|INVALID_BODY))$/,
    () => inForm('form-data; name="file"; filename="a"'),
    'multipart/form-data; boundary=X; boundary=B',
  ],
  [
    'a boundary of 10,000 characters',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => 'x',
    `multipart/form-data; boundary=${'b'.repeat(10_000)}`,
  ],
  [
    'a boundary that is not there',
    /^400 (FILE_MISSING|INVALID_BODY)$/,
    () => inForm('form-data; name="file"; filename="a"'),
    'multipart/form-data; boundary=Z',
  ],
  ['another kind of form', /^400 FILE_MISSING$/, () => 'file=bytes', 'application/x-www-form-urlencoded'],
  ['a content type that is none', /^400 FILE_MISSING$/, () => 'x', ';;;'],
  ['nothing', /^400 (FILE_MISSING|INVALID_BODY)$/, () => ''],
];

describe('a form', () => {
  it.each(FORMS)('of %s ends as %s, soon and with nothing left behind', async (_what, outcome, form, contentType) => {
    const answer = await upload(form(), contentType);
    expect(outcomeOf(answer)).toMatch(outcome);
    if (answer.status !== 201) expect(await listStoredFiles(stage.dataDir)).toEqual([]);
  });

  it('that says it is shorter than it is, or gzipped, is not believed', async () => {
    const form = Buffer.from(inForm('form-data; name="file"; filename="a"'));
    const shorter = await call('POST', '/api/storage/upload', form, {
      'content-type': 'multipart/form-data; boundary=B',
      'content-length': String(form.length - 10),
    });
    expect(shorter.status).toBe(400);
    await eventually('nothing is left', async () => (await listStoredFiles(stage.dataDir)).length === 0);
    const zipped = await call('POST', '/api/storage/upload', form, {
      'content-type': 'multipart/form-data; boundary=B',
      'content-encoding': 'gzip',
    });
    expect([201, 400, 415]).toContain(zipped.status);
    if (zipped.status === 201) expect(await bytesOf(zipped)).toBe('bytes');
  });

  it('is stored byte for byte, whatever the bytes look like', async () => {
    const bytes = `\r\n--A--\r\n--C--\r\n\0\r\n\r\n--\r\n${'\r\n--'.repeat(1000)}`;
    expect(await bytesOf(await upload(inForm('form-data; name="file"; filename="a.txt"', 'text/plain', bytes)))).toBe(
      bytes,
    );
  });
});

async function bytesOf(answer: Answer): Promise<string> {
  const { path } = JSON.parse(answer.text) as { path: string };
  return (await fire(stage, { method: 'GET', path: `/files/${path}` })).text;
}

describe('a size', () => {
  const lies: readonly [size: string, outcome: string][] = [
    ['-1', '400 VALIDATION_FAILED'],
    ['-0', '200'],
    ['0.5', '400 VALIDATION_FAILED'],
    ['1e400', '400 VALIDATION_FAILED'],
    ['1e15', '413 FILE_TOO_LARGE'],
    ['9007199254740993', '400 VALIDATION_FAILED'],
    ['102401', '413 FILE_TOO_LARGE'],
    ['"5"', '400 VALIDATION_FAILED'],
    ['null', '400 VALIDATION_FAILED'],
    ['[5]', '400 VALIDATION_FAILED'],
    ['true', '400 VALIDATION_FAILED'],
    ['"NaN"', '400 VALIDATION_FAILED'],
  ];
  it.each(lies)('of %s is answered %s', async (size, outcome) => {
    const body = `{"filename":"a.txt","contentType":"text/plain","size":${size}}`;
    expect(outcomeOf(await call('POST', '/api/storage/upload-request', body))).toBe(outcome);
  });

  it('that the confirmation lies about charges what is stored', async () => {
    for (const [claimed, outcome] of [
      [0, '200'],
      [69, '200'],
      [70, '400 UPLOAD_SIZE_MISMATCH'],
      [1e12, '400 UPLOAD_SIZE_MISMATCH'],
    ] as const) {
      const { body } = await storage.request({ filename: 'a', contentType: 'text/plain', size: 5 });
      await fetch(body.signedUrl, { method: 'PUT', headers: { 'content-type': 'text/plain' }, body: '12345' });
      const answer = await call('POST', '/api/storage/upload-confirm', { filePath: body.filePath, size: claimed });
      expect({ claimed, outcome: outcomeOf(answer) }).toEqual({ claimed, outcome });
    }
    const asAdmin = callerWith(stage, { authorization: `Bearer ${ADMIN_TOKEN}` });
    const usage = await asAdmin('GET', `/api/projects/${projectId()}/usage`);
    expect(JSON.parse(usage.text)).toMatchObject({ data: { storage: { bytes: 10, files: 2 } } });
  });
});

describe('a signed address', () => {
  interface Signed {
    path: string;
    query: URLSearchParams;
  }
  const sign = async (): Promise<Signed> => {
    const { body } = await storage.request({ filename: 'a.txt', contentType: 'text/plain', size: 5 });
    const url = new URL(body.signedUrl);
    return { path: url.pathname, query: url.searchParams };
  };
  const put = (path: string, query: string, headers: Record<string, string> = {}): Promise<Answer> =>
    fire(stage, {
      method: 'PUT',
      path: `${path}?${query}`,
      headers: { 'content-type': 'text/plain', ...headers },
      body: '12345',
    });

  const tampered: readonly [what: string, change: (signed: Signed) => [path: string, query: string]][] = [
    ['without its query', ({ path }) => [path, '']],
    [
      'with every parameter twice',
      ({ path, query }) => [path, `expires=99999999999999&size=5&type=text%2Fplain&${query.toString()}`],
    ],
    ['that never expires', ({ path, query }) => [path, with_(query, 'expires', '99999999999999')]],
    ['that expires at infinity', ({ path, query }) => [path, with_(query, 'expires', '1e400')]],
    ['with a signature of zeros', ({ path, query }) => [path, with_(query, 'signature', 'A'.repeat(43))]],
    [
      'with half a signature',
      ({ path, query }) => [path, with_(query, 'signature', query.get('signature')!.slice(0, 20))],
    ],
    ['with a signature and more', ({ path, query }) => [path, with_(query, 'signature', `${query.get('signature')}A`)]],
    [
      'with a hash anybody can make',
      ({ path, query }) => [path, with_(query, 'signature', createHash('sha256').update(path).digest('base64url'))],
    ],
    ['for another name', ({ path, query }) => [`${path}.html`, query.toString()]],
    ['for a place above', ({ path, query }) => [path.replace('/files/', '/files/../'), query.toString()]],
    ['in capitals', ({ path, query }) => [path.toUpperCase().replace('/FILES/', '/files/'), query.toString()]],
    ['with an array in its query', ({ path, query }) => [path, query.toString().replace('signature=', 'signature[]=')]],
  ];
  it.each(tampered)('%s takes nothing', async (_what, change) => {
    const answer = await put(...change(await sign()));
    expect(outcomeOf(answer)).toBe('403 UPLOAD_URL_INVALID');
  });

  it('takes no other type, method or length, and is no address to read or delete', async () => {
    const { path, query } = await sign();
    expect(outcomeOf(await put(path, query.toString(), { 'content-type': 'text/html' }))).toBe(
      '400 UPLOAD_TYPE_MISMATCH',
    );
    for (const [method, outcome] of [
      ['GET', '404 FILE_NOT_FOUND'],
      ['POST', '405 METHOD_NOT_ALLOWED'],
      ['DELETE', '405 METHOD_NOT_ALLOWED'],
    ]) {
      const answer = await fire(stage, { method: method!, path: `${path}?${query.toString()}` });
      expect(outcomeOf(answer)).toBe(outcome);
    }
  });

  const with_ = (query: URLSearchParams, name: string, value: string): string => {
    const changed = new URLSearchParams(query);
    changed.set(name, value);
    return changed.toString();
  };
});

describe('a range', () => {
  const ranges = [
    'bytes=0-0,0-0,0-0',
    `bytes=${Array.from({ length: 1000 }, (_, at) => `${at}-`).join(',')}`,
    'bytes=0-99999999999999999999',
    'bytes=99999999999999999999-',
    'bytes=-99999999999999999999',
    'bytes=0x0-0x5',
    'bytes=0-1e3',
    'bytes= 0-1',
    'BYTES=0-1',
    'bytes=',
    '-',
    '5',
  ];
  it.each(ranges)('of %s never answers more than the file', async (range) => {
    const { body } = await storage.upload('0123456789', 'a.txt', 'text/plain');
    const answer = await fire(stage, { method: 'GET', path: `/files/${body.path}`, headers: { range } });
    expect([200, 206, 416]).toContain(answer.status);
    if (answer.status !== 416) expect('0123456789').toContain(answer.text);
  });
});

describe('an upload that never ends', () => {
  it('is refused at its limit although it named no length', async () => {
    const answered = new Promise<number>((resolve) => {
      const request = httpRequest(`${stage.url}/api/storage/upload`, {
        method: 'POST',
        headers: {
          'x-api-key': owner.secret,
          'content-type': 'multipart/form-data; boundary=B',
          'transfer-encoding': 'chunked',
        },
      });
      request.on('error', () => undefined);
      request.on('response', (response) => {
        response.resume();
        resolve(response.statusCode!);
        request.destroy();
      });
      request.write(`--B\r\n${FILE_PART.slice(0, -7)}`);
      const more = (): void =>
        void (request.destroyed || request.write(Buffer.alloc(20_000), () => setImmediate(more)));
      more();
    });
    expect(await answered).toBe(413);
  });
});
