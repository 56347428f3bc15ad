import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { importDocuments } from '../world/documents.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const test = await useTestApp();
const shop = await buildProject(test.app);
const items = await buildCollection(test.app, shop.project, { name: 'items' });

const send = (method: 'post' | 'put' | 'patch', path: string, json: string): request.Test =>
  request(test.server)
    [method](`/api/data/${path}`)
    .set({ 'x-api-key': shop.secret, 'content-type': 'application/json' })
    .send(json);

const TOO_LARGE = 'a whole number beyond 9007199254740991 loses digits; send it as text';

describe('a whole number that JSON cannot hold exactly', () => {
  it.each([
    ['{"id":9007199254740993}', 'id'],
    ['{"id":-9007199254740993}', 'id'],
    ['{"a":{"b":[1,{"c":100000000000000000001}]}}', 'a.b.1.c'],
  ])('is refused in an insert with its path: %s', async (json, path) => {
    const { body } = (await send('post', 'items', json).expect(400)) as { body: { code: string; message: string } };
    expect(body).toMatchObject({ code: 'INVALID_BODY', message: `${path}: ${TOO_LARGE}` });
  });

  it.each([
    ['put', '{"n":9007199254740993}', 'n'],
    ['patch', '{"a.b":9007199254740993}', 'a.b'],
    ['patch', '{"a":{"b":{"c":12345678901234567890}}}', 'a.b.c'],
  ] as const)('is refused in an update with its path: %s %s', async (method, json, path) => {
    const { body: made } = (await send('post', 'items', '{"n":1,"a":{"b":1}}').expect(201)) as {
      body: { _id: string };
    };
    const { body } = (await send(method, `items/${made._id}`, json).expect(400)) as { body: { message: string } };
    expect(body.message).toBe(`${path}: ${TOO_LARGE}`);
  });

  it('is refused in an import, which stores the other lines', async () => {
    const values = JSON.parse('[{"n":9007199254740993},{"n":9007199254740991}]') as unknown[];
    expect(await importDocuments(test.app, items, values)).toEqual({
      inserted: 1,
      rejected: [{ index: 0, message: `n: ${TOO_LARGE}` }],
    });
  });
});

describe('a number that JSON holds', () => {
  it.each(['9007199254740991', '-9007199254740991', '0.1', '6.02214076e+23', '1e+300'])(
    'is stored as it is: %s',
    async (text) => {
      const { body } = (await send('post', 'items', `{"n":${text}}`).expect(201)) as { body: { n: number } };
      expect(body.n).toBe(Number(text));
    },
  );
});
