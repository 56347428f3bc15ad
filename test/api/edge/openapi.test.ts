import { Validator } from '@seriousme/openapi-schema-validator';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { type ApiDocument, ROUTE_LISTS, templateOf } from '../../world/app.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const document: ApiDocument = (await request(test.server).get('/api/openapi.json')).body;

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

  it('needs no key, and answers 304 to a client that has it', async () => {
    const first = await request(test.server).get('/api/openapi.json');
    expect(first.status).toBe(200);
    expect(first.headers['content-type']).toBe('application/json; charset=utf-8');
    const again = await request(test.server).get('/api/openapi.json').set('If-None-Match', first.headers.etag!);
    expect(again.status).toBe(304);
  });
});

describe('GET /api/openapi.json?tag=…', () => {
  const ofTag = (tag: string) => request(test.server).get('/api/openapi.json').query({ tag });

  it('has the operations of each tag, once, in a valid document of at most 40 KiB that needs no other', async () => {
    const seen: string[] = [];
    for (const { name } of document.tags) {
      const { body, text } = await ofTag(name).expect(200);
      expect([name, Buffer.byteLength(text) <= 40 * 1024]).toEqual([name, true]);
      const { valid, errors } = await new Validator().validate(structuredClone(body) as never);
      expect([name, valid, errors ?? []]).toEqual([name, true, []]);
      const { paths, components } = body as ApiDocument;
      for (const [, kind, part] of text.matchAll(/"#\/components\/(\w+)\/([\w.-]+)"/g)) {
        expect([part, (components as unknown as Record<string, object>)[kind!]]).toEqual([
          part,
          expect.objectContaining({ [part!]: expect.anything() as unknown }),
        ]);
      }
      seen.push(...Object.values(paths).flatMap((each) => Object.values(each).map(({ operationId }) => operationId)));
    }
    const all = Object.values(document.paths).flatMap((each) =>
      Object.values(each).map(({ operationId }) => operationId),
    );
    expect(seen.toSorted()).toEqual(all.toSorted());
  });

  it.each([
    ['data', 'Documents'],
    ['storage', 'Files'],
    ['mail', 'Mail'],
  ])('%s, what its paths begin with, is %s', async (word, tag) => {
    expect((await ofTag(word).expect(200)).text).toBe((await ofTag(tag).expect(200)).text);
  });

  it('names the tags where there is none of this name', async () => {
    const { status, body } = await ofTag('nope');
    expect([status, body.code, body.message]).toEqual([
      404,
      'NOT_FOUND',
      expect.stringContaining('Documents, Schemas'),
    ]);
  });
});

describe('GET /api/docs and /api/docs/operators', () => {
  const PAGES = ['/api/docs', '/api/docs/operators'];
  const textOf = async (path: string): Promise<string> => (await request(test.server).get(path).expect(200)).text;
  const textOfBoth = async (): Promise<string> => (await Promise.all(PAGES.map(textOf))).join('\n');

  it('show every operation and schema of the document once, for readers without a script', async () => {
    const { headers } = await request(test.server).get('/api/docs');
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    const text = await textOfBoth();
    const shown = [...text.matchAll(/<details class="operation" id="(\w+)">/g)].map(([, id]) => id);
    const ids = Object.values(document.paths).flatMap((operations) =>
      Object.values(operations).map(({ operationId }) => operationId),
    );
    expect(shown.toSorted()).toEqual(ids.toSorted());
    for (const name of Object.keys(document.components.schemas)) expect(text).toContain(`id="schema-${name}"`);
  });

  it('keep what an operator’s token is for apart, and list all of it at the side', async () => {
    for (const path of PAGES) {
      const text = await textOf(path);
      for (const operation of Object.values(document.paths).flatMap((each) => Object.values(each))) {
        const { operationId: id, tags, security } = operation;
        const isHere = text.includes(`<details class="operation" id="${id}">`);
        const other = PAGES.find((each) => each !== path)!;
        expect(text).toContain(`<a href="${isHere ? '' : other}#${id}"`);
        // What signs operators in is beside what they do then.
        const isOperators = security.some((each) => 'operatorToken' in each) || tags.includes('Operators');
        expect([id, isHere]).toEqual([id, isOperators === (path === '/api/docs/operators')]);
      }
    }
  });

  it('have an example in JavaScript for every operation, which does what it says', async () => {
    const text = await textOfBoth();
    const scripts = [...text.matchAll(/id="(\w+)">\n<summary>|In JavaScript<\/summary><pre[^>]*><code>([^<]*)</g)];
    const examples = new Map<string, string>();
    let id = '';
    for (const [, operation, code] of scripts) {
      if (operation !== undefined) id = operation;
      else
        examples.set(
          id,
          code!.replace(/&(#39|quot|lt|gt|amp);/g, (_sign, name: string) => SIGNS[name]!),
        );
    }
    const ids = Object.values(document.paths).flatMap((of) => Object.values(of).map(({ operationId }) => operationId));
    expect([...examples.keys()].sort()).toEqual(ids.sort());
    for (const [name, code] of examples) expect(() => asFunction(code), `${name}\n${code}`).not.toThrow();

    const { project, secret } = await buildProject(test.app);
    await buildCollection(test.app, project, { name: 'posts', mode: 'flexible' });
    const run = (name: string) => asFunction(examples.get(name)!)(test.url, secret, secret, new Blob(['x']));
    const { _id } = (await run('insertDocument')) as { _id: string };
    expect(await run('listDocuments')).toMatchObject({ success: true, data: { limit: expect.any(Number) as number } });
    expect(await run('uploadFile')).toMatchObject({ url: expect.stringContaining('/files/') as string });
    expect(_id).toMatch(/^[0-9a-f]{24}$/);
  });

  it.each(PAGES)('link only to existing anchors, and load nothing from elsewhere: %s', async (path) => {
    const { headers, text } = await request(test.server).get(path);
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    expect([...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id).filter((id) => !ids.has(id))).toEqual([]);
    const loaded = [...text.matchAll(/(?:src|<link[^>]* href)="([^"]+)"/g)].map(([, address]) => address!);
    expect(loaded).toEqual(['/api/docs/page.css', '/api/docs/page.js']);
    for (const address of loaded) expect((await request(test.server).get(address)).status).toBe(200);
    // What the policy would block anyway.
    expect(text).not.toMatch(/<script(?![^>]* src)|<style| style="| on\w+="/);
    expect(headers['content-security-policy']).toContain("default-src 'none'; style-src 'self'; script-src 'self'");
  });

  it('are compressed on request, and 304 for a client that has them', async () => {
    const plain = await fetch(`${test.url}/api/docs`, { headers: { 'accept-encoding': 'identity' } });
    const packed = await fetch(`${test.url}/api/docs`, { headers: { 'accept-encoding': 'gzip' } });
    expect([plain.headers.get('content-encoding'), packed.headers.get('content-encoding')]).toEqual([null, 'gzip']);
    expect(await packed.text()).toBe(await plain.text());
    const again = await request(test.server).get('/api/docs').set('If-None-Match', plain.headers.get('etag')!);
    expect([again.status, again.text]).toEqual([304, '']);
  });
});

const SIGNS: Readonly<Record<string, string>> = { '#39': "'", quot: '"', lt: '<', gt: '>', amp: '&' };

/** An example of the page as a function of what it leaves to its reader. */
function asFunction(code: string): (...values: unknown[]) => Promise<unknown> {
  const AsyncFunction = (async () => undefined).constructor as new (...words: string[]) => () => Promise<unknown>;
  const names = ['BSVC_URL', 'PUBLISHABLE_KEY', 'SECRET_KEY', 'file'];
  return new AsyncFunction(...names, code.includes('const answer') ? `${code}\nreturn answer;` : code);
}

function listMounted(): string[] {
  return ROUTE_LISTS.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${templateOf(path)}`));
}
