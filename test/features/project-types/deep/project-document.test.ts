import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../../../src/api.js';
import { describeCollections } from '../../../../src/features/project-types/described-project.js';
import { buildProjectDocument } from '../../../../src/features/project-types/project-document.js';
import { writeProjectFile } from '../../../../src/features/project-types/project-files.js';
import { buildApiDocument, type ApiDocument } from '../../../../src/features/reference/api-document.js';
import { compile } from '../../../helpers/compile.js';
import { ESTATE, estateCollections } from '../../../helpers/estate.js';
import { generateClient, generateTypes } from '../../../helpers/generated-clients.js';
import { openTempDir } from '../../../helpers/temp-dir.js';

const described = (isPublic = false) => describeCollections('shop', estateCollections(), { isPublic });

const document = await buildProjectDocument(ROUTE_LISTS, described());
/** As it is answered over HTTP. */
const short = JSON.parse(await writeProjectFile('openapi.json', ROUTE_LISTS, described(), null, {})) as ApiDocument;

function sourceOf(which: string): ApiDocument {
  if (which === 'of the service') return buildApiDocument(ROUTE_LISTS, '1.0.0');
  return which === 'of the project' ? document : short;
}

describe('openapi.json of a project', () => {
  it.each(['whole', 'in short'])(
    'is a valid OpenAPI 3.1 document that refers only to what it has: %s',
    async (form) => {
      const source = form === 'whole' ? document : short;
      const { valid, errors } = await new Validator().validate(structuredClone(source) as never);
      expect(errors ?? []).toEqual([]);
      expect(valid).toBe(true);
      const text = JSON.stringify(source);
      const refs = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([\w.-]+)"/g)];
      expect(refs.length).toBeGreaterThan(100);
      const missing = refs.filter(([, kind, name]) => !Object.hasOwn(source.components[kind as 'schemas'], name!));
      expect(missing.map(([ref]) => ref)).toEqual([]);
    },
  );

  it('has in short the same operations on documents, and leads to what it has said before', () => {
    const ofData = Object.keys(document.paths).filter((path) => path.startsWith('/api/data/'));
    expect(Object.keys(short.paths)).toEqual(expect.arrayContaining(ofData));
    const ids = new Set(Object.values(short.paths).flatMap((each) => Object.values(each).map((op) => op.operationId)));
    const led = [...JSON.stringify(short).matchAll(/As `(\w+)`\./g)].map(([, id]) => id!);
    expect(led.length).toBeGreaterThan(10);
    expect(led.filter((id) => !ids.has(id))).toEqual([]);
  });

  it('has every operation on documents for each collection, and those of accounts, files and mail', () => {
    const perCollection = ROUTE_LISTS.flatMap(({ routes }) => routes)
      .map(({ path, method }) => `${method} ${path}`)
      .filter((line) => /\/api\/data\/:collectionName(\/|$)/.test(line));
    const described = new Set(
      Object.entries(document.paths).flatMap(([path, operations]) =>
        Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
      ),
    );
    const expected = ESTATE.flatMap(({ name }) =>
      perCollection.map((line) => line.replace(':collectionName', name).replace(/:(\w+)/g, '{$1}')),
    );
    expect(expected.filter((line) => !described.has(line))).toEqual([]);
    for (const line of ['POST /api/userAuth/login', 'POST /api/storage/upload-request', 'POST /api/mail/send'])
      expect(described).toContain(line);
    expect(
      [...described].filter((line) => /\/api\/(admin|projects)|:collectionName|\{collectionName\}.*data/.test(line)),
    ).toEqual([]);
  });

  it('tells a publishable key nothing of protected fields', async () => {
    expect(JSON.stringify(document)).toContain('"role":');
    const shown = await buildProjectDocument(ROUTE_LISTS, described(true));
    expect(JSON.stringify(shown)).not.toContain('"role":');
  });

  it.each(['of the project', 'of the project in short', 'of the service'])(
    'makes clients by generators of others that compile: %s',
    async (which) => {
      const source = sourceOf(which);
      const program: Record<string, string> = {
        'test/made/types.ts': await generateTypes(source),
        ...(await generateClient(source, 'test/made/client')),
      };
      const mistakes: string[] = [];
      if (which !== 'of the service') {
        program['test/made/use.ts'] = `
        import type { components, operations } from './types.js';
        import { insertPostsDocument, listPostsDocuments, type PostsInsert } from './client/index.js';
        export const sent: components['schemas']['PostsInsert'] = { title: '', author: '', meta: { score: 1 } };
        export const title = (post: components['schemas']['PostsDocument']): string => post.title;
        export const views = (post: components['schemas']['PostsShown']): number | undefined => post.views;
        export type Query = NonNullable<operations['listPostsDocuments']['parameters']['query']>;
        export const made = (post: PostsInsert) => insertPostsDocument({ body: post });
        export const list = async () => (await listPostsDocuments({ query: { limit: 5 } })).data;
      `;
        mistakes.push(
          `import type { components } from './types.js'; export const x: components['schemas']['PostsInsert'] = { title: 1, author: '' };`,
          `import type { components } from './types.js'; export const x: components['schemas']['PostsInsert'] = { title: '', author: '', unknown: 1 };`,
          `import type { PostsInsert } from './client/index.js'; export const x: PostsInsert = { title: '' };`,
          `import { insertPostsDocument } from './client/index.js'; void insertPostsDocument({ body: { title: '', author: '', view: 1 } });`,
        );
        mistakes.forEach((text, at) => (program[`test/made/wrong-${at}.ts`] = text));
      }
      const complaints = compile(program);
      expect(complaints.filter((line) => !line.startsWith('test/made/wrong-'))).toEqual([]);
      const refused = new Set(complaints.map((line) => Number(/wrong-(\d+)/.exec(line)?.[1])));
      expect(mistakes.filter((_, at) => !refused.has(at))).toEqual([]);
    },
  );
});

describe.each(['of the project', 'of the project in short', 'of the service'])('the API document %s', (which) => {
  const source = (): ApiDocument => sourceOf(which);

  it('has no error that Redocly finds', async () => {
    const dir = await openTempDir();
    try {
      await writeFile(join(dir.path, 'openapi.json'), JSON.stringify(source()));
      const redocly = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js');
      const { stdout } = spawnSync(process.execPath, [redocly, 'lint', 'openapi.json', '--format', 'json'], {
        cwd: dir.path,
        encoding: 'utf8',
        env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
        maxBuffer: 64 * 1024 ** 2,
      });
      expect(JSON.parse(stdout.slice(stdout.indexOf('{\n')))).toMatchObject({ totals: { errors: 0 } });
    } finally {
      await dir.remove();
    }
  });

  it('says of each property what it is: generators stumble over true and false', () => {
    const bare = Object.entries(source().components.schemas).flatMap(([name, { properties }]) =>
      Object.entries(properties ?? {}).flatMap(([field, schema]) => (typeof schema === 'object' ? [] : [name, field])),
    );
    expect(bare).toEqual([]);
  });

  it('has schemas that a strict validator compiles', () => {
    const { schemas } = JSON.parse(
      JSON.stringify(source().components).replaceAll('#/components/schemas/', '#/$defs/'),
    ) as { schemas: Record<string, object> };
    const ajv = new Ajv2020({ strict: true, strictTypes: false, validateFormats: false, allowUnionTypes: true });
    ajv.addSchema({ $id: 'api', $defs: schemas });
    const refused = Object.keys(schemas).flatMap((name) => {
      try {
        ajv.compile({ $ref: `api#/$defs/${name}` });
        return [];
      } catch (error) {
        return [`${name}: ${(error as Error).message}`];
      }
    });
    expect(refused).toEqual([]);
  });
});

describe('schema.json of a project', () => {
  it('accepts documents as the service answers and takes them, and nothing else', async () => {
    const schema = JSON.parse(await writeProjectFile('schema.json', [], described())) as { $defs: object };
    const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true });
    ajv.addSchema(schema, 'shop');
    const accepts = (name: string, value: unknown): boolean => ajv.validate(`shop#/$defs/${name}`, value) as boolean;
    const id = '66f0c0ffee0ddba11c0de001';
    const moment = '2026-11-22T10:00:00.000Z';
    const system = { _id: id, isDeleted: false, deletedAt: null, createdAt: moment, updatedAt: moment };
    const filledIn = { views: 0, live: false, status: 'open' };
    const post = { ...system, ...filledIn, title: 'x', author: id, tags: ['a'], meta: { score: 1 } };
    expect(accepts('PostsDocument', post)).toBe(true);
    // A field with a default is always there.
    for (const name of ['author', ...Object.keys(filledIn)]) {
      expect([name, accepts('PostsDocument', { ...post, [name]: undefined })]).toEqual([name, false]);
    }
    expect(accepts('PostsInsert', { title: 'x', author: id })).toBe(true);
    expect(accepts('PostsInsert', { title: 'x', author: id, unknown: 1 })).toBe(false);
    expect(accepts('PostsUpdate', { 'meta.deep.er': null, 'free.any.thing': 1 })).toBe(true);
    expect(accepts('PostsUpdate', { title: null })).toBe(false);
    expect(accepts('PostsUpdate', {})).toBe(false);
    expect(accepts('LooseInsert', { whatever: 1 })).toBe(true);
    expect(accepts('NotesInsert', { text: '' })).toBe(true);
    expect(accepts('UsersInsert', { email: 'a', password: 'b', role: 'c' })).toBe(false);
    expect([ajv.validate('shop', { categories: [{ ...system, name: 'x' }] }), ajv.errors]).toEqual([true, null]);
  });
});
