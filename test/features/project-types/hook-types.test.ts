import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeCollections } from '../../../src/features/project-types/described-project.js';
import { HOOK_TYPES } from '../../../src/features/project-types/hook-types.js';
import { writeTypeFile } from '../../../src/features/project-types/type-file.js';
import { compile } from '../../helpers/compile.js';
import { estateCollections } from '../../helpers/estate.js';

const FILE = 'test/types.d.ts';
const CLIENT = { paths: { '@bsvc/client': [join(import.meta.dirname, '../../../src/client/client.ts')] } };
const HEAD = `import type { Handlers } from './types.js';\n`;

const FITS = `${HEAD}
export default {
  'posts.create': ({ document, documents, caller, idempotencyKey }) => {
    if (documents) return { allow: true, set: documents.map(({ document: each }) => ({ views: each.title.length })) };
    if (caller.roles.includes('guest')) return { allow: false, status: 422, code: 'NO_GUESTS', message: 'Sign in' };
    return { allow: true, set: { views: document.title.length + (idempotencyKey ?? '').length } };
  },
  'notes.update': async ({ document, before, api, caller }) => {
    const mine = await api.as(caller).collection('notes').list();
    return mine.items.length > 10 || document?.text === before?.text ? { allow: false } : { allow: true };
  },
  'users.login': ({ document }) => (document.method === 'pwd' && document.email ? { allow: true } : { allow: false }),
  'users.deliver': ({ document }) => ({ delivered: document.template === 'login-code' && document.code !== undefined }),
  'after.posts.delete': async ({ document, before, actor, api }) => {
    await api.collection('notes').insert({ text: document.title + (before?.slug ?? '') + actor.type });
  },
  'POST /quote': ({ request }) => ({ status: 201, body: { n: request.body.n }, headers: { 'x-a': '1' } }),
  'GET /page': () => new Response('hello'),
  'POST /paid': { public: true, handle: async ({ request }) => void request.rawBody.length },
  nightly: ({ api }) => api.collection('posts').list(),
} satisfies Handlers<'nightly'>;
`;

const REFUSED = [
  `({ 'posts.created': () => ({ allow: true }) }) satisfies Handlers`,
  `({ 'nowhere.create': () => ({ allow: true }) }) satisfies Handlers`,
  `({ 'users.create': () => ({ allow: true }) }) satisfies Handlers`,
  `({ 'posts.create': () => ({ ok: true }) }) satisfies Handlers`,
  `({ 'posts.create': () => ({ allow: true, set: { views: 'many' } }) }) satisfies Handlers`,
  `({ 'posts.create': () => ({ allow: false, status: 500 }) }) satisfies Handlers`,
  // A list has no document.
  `({ 'posts.create': ({ document }) => ({ allow: document.title === '' }) as { allow: true } }) satisfies Handlers`,
  `({ 'after.posts.create': ({ document }) => document.nothing }) satisfies Handlers`,
  `({ 'users.deliver': () => ({ allow: true }) }) satisfies Handlers`,
  `({ 'POST /quote': () => 42 }) satisfies Handlers`,
  `({ 'FETCH /quote': () => ({ body: 1 }) }) satisfies Handlers`,
  `({ nightly: () => undefined }) satisfies Handlers`,
  `({ 'notes.create': async ({ api }) => { await api.collection('nowhere').list(); return { allow: true }; } }) satisfies Handlers`,
];

describe('the types of own code', () => {
  it('fit handlers of every kind, and refuse what the service would', async () => {
    const types = await writeTypeFile(describeCollections('shop', estateCollections(), { isPublic: false }));
    const mistakes = REFUSED.map((line, at) => [`test/refused-${at}.ts`, `${HEAD}export default ${line};\n`]);
    const texts = { [FILE]: `${types}\n${HOOK_TYPES}`, 'test/fits.ts': FITS, ...Object.fromEntries(mistakes) };
    const complaints = compile(texts, CLIENT);
    expect(complaints.filter((line) => !line.startsWith('test/refused-'))).toEqual([]);
    const refused = new Set(complaints.map((line) => Number(/refused-(\d+)/.exec(line)?.[1])));
    expect(REFUSED.filter((_, at) => !refused.has(at))).toEqual([]);
  });
});
