import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, expect, it, vi } from 'vitest';
import { openS3Store } from '../../../src/platform/object-store/s3-store.js';
import { openSpool } from '../../../src/platform/object-store/spool.js';
import { listen } from '../../helpers/listen.js';
import { openS3Double } from '../../helpers/s3-double.js';
import { openTempDir } from '../../helpers/temp-dir.js';

afterEach(() => vi.unstubAllEnvs());

it('the service’s own bucket is reached by the role of its container, without keys in its settings', async () => {
  const { path, remove } = await openTempDir();
  const double = await openS3Double();
  const asked: (string | undefined)[] = [];
  const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey } = double.access;
  const keys = { AccessKeyId, SecretAccessKey, Token: 'of-the-role', Expiration: '2999-01-01T00:00:00Z' };
  const role = await listen(
    createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(keys));
    }),
  );
  const given = Object.keys(process.env).filter((name) => name.startsWith('AWS_'));
  for (const name of given) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${role.url}/role`);
  vi.stubEnv('AWS_CONTAINER_AUTHORIZATION_TOKEN', 'of-the-container');
  vi.stubEnv('AWS_CONFIG_FILE', join(path, 'none'));
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(path, 'none'));
  const store = openS3Store(
    { ...double.access, accessKeyId: null, secretAccessKey: null },
    { allowPrivate: true, spool: openSpool(join(path, 'spool')) },
  );
  try {
    const plain = { contentType: 'text/plain', attachment: false };
    await store.put('folder/0_file.txt', Readable.from([Buffer.from('text')]), plain);
    expect(await store.findSize('folder/0_file.txt')).toBe(4);
    expect(asked).toEqual(['/role of-the-container']);
  } finally {
    store.close();
    await double.close();
    await role.close();
    await remove();
  }
});
