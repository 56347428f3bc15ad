import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const send = (method: 'get' | 'post', path: string, body?: object) =>
  request(test.server)[method](`/api/data${path}`).set('x-api-key', owner.secret).send(body);

const test = await useTestApp();
const owner = await buildProject(test.app);
for (const name of ['posts', 'notes']) await buildCollection(test.app, owner.project, { name });
await send('post', '/posts/bulk', [{ title: 'first of all' }, { title: 'second of all' }]).expect(201);
await send('post', '/notes', { title: 'a note' }).expect(201);

/** Changes every copy of the text in the data file by one bit. */
function damage(text: string): void {
  const wire = join(test.dataDir, 'wire', 'bsvc.mdb');
  const file = existsSync(wire) ? wire : join(test.dataDir, 'bsvc.mdb');
  const bytes = readFileSync(file);
  const opened = openSync(file, 'r+');
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    writeSync(opened, Buffer.from([bytes[at]! ^ 0x20]), 0, 1, at);
  }
  closeSync(opened);
}

describe('a damaged document', () => {
  it('is answered with 500 STORE_DAMAGED and the name of its collection; everything else goes on', async () => {
    damage('second of all');
    for (let round = 0; round < 3; round++) {
      const { body } = await send('get', '/posts').expect(500);
      expect(body).toMatchObject({ code: 'STORE_DAMAGED', message: expect.stringContaining('"posts"') as string });
      expect((await send('get', '/notes').expect(200)).body).toMatchObject({ data: { items: [{ title: 'a note' }] } });
      await send('post', '/posts', { title: `new in round ${round}` }).expect(201);
      await request(test.server).get('/api/health/ready').expect(200);
    }
    expect(test.logLines.join('')).toMatch(/is damaged/);
  });
});
