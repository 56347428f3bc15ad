import { Validator } from '@seriousme/openapi-schema-validator';
import request from 'supertest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/api.js';
import { templateOf, type ApiDocument } from '../../src/features/reference/api-document.js';
import { openTestApp, type TestApp } from '../helpers/open-test-app.js';

let test: TestApp;
let document: ApiDocument;

beforeAll(async () => {
  test = await openTestApp();
  document = (await request(test.server).get('/api/openapi.json')).body;
});
afterAll(() => test.close());

describe('GET /api/openapi.json', () => {
  it('is a valid OpenAPI 3.1 document', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document) as never);
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    expect(validator.version).toBe('3.1');
  });

  it('has every mounted route and no other', () => {
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual(listMounted().sort());
  });

  it('refers only to components that it has', () => {
    const refs = new Set(
      [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)].map(
        ([, kind, name]) => `${kind}/${name}`,
      ),
    );
    const there = Object.entries(document.components).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `${kind}/${name}`),
    );
    expect([...refs].filter((ref) => !there.includes(ref))).toEqual([]);
    expect(JSON.stringify(document)).not.toContain('#/$defs');
  });

  it('needs no key, and is not sent again to who has it', async () => {
    const first = await request(test.server).get('/api/openapi.json');
    expect(first.status).toBe(200);
    expect(first.headers['content-type']).toBe('application/json; charset=utf-8');
    const again = await request(test.server).get('/api/openapi.json').set('If-None-Match', first.headers.etag!);
    expect(again.status).toBe(304);
  });
});

function listMounted(): string[] {
  return ROUTES.map((routes) => routes(test.app)).flatMap(({ router }) =>
    router.stack.flatMap(({ path, methods }) =>
      methods
        .filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${templateOf(String(path)).replace(/(.)\/$/, '$1')}`),
    ),
  );
}
