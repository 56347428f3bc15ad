import { existsSync } from 'node:fs';
import { join } from 'node:path';
import request from 'supertest';
import { expect, it } from 'vitest';
import { GUIDES, ROUTE_LISTS, buildApiDocument, pageOfError } from '../../world/app.js';
import { GUIDES_FOLDER, readGuides } from '../../helpers/guide-examples.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();

const get = (path: string) => request(test.server).get(path);

it.each<[path: string, type: string, most: number]>([
  ['/llms.txt', 'text/plain', 4_096],
  ['/api/docs/all.md', 'text/markdown', 200_000],
  ['/api/docs/agents/SKILL.md', 'text/markdown', 8_192],
  ['/api/docs/agents/LIMITS.md', 'text/markdown', 16_384],
  ['/api/docs/agents/AGENTS.md', 'text/markdown', 2_048],
  ...GUIDES.map(({ name }): [string, string, number] => [`/api/docs/${name}.md`, 'text/markdown', 40_000]),
])('GET %s answers a text of %s with at most %i bytes', async (path, type, most) => {
  const { status, headers, text } = await get(path);
  expect([status, headers['content-type']]).toEqual([200, `${type}; charset=utf-8`]);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(most);
  const copy = await get(path).set('if-none-match', headers.etag!);
  expect(copy.status).toBe(304);
});

it('every page that /llms.txt and the skill name is there', async () => {
  const texts = await Promise.all(
    ['/llms.txt', '/api/docs/agents/SKILL.md'].map(async (path) => (await get(path)).text),
  );
  const named = texts.flatMap((text) => [...text.matchAll(/\]\((\/[^)]+)\)/g)].map(([, path]) => path!));
  expect(named.length).toBeGreaterThan(12);
  for (const path of named) expect([path, (await get(path)).status]).toEqual([path, 200]);
});

it('/llms.txt says of a page what is in it, under the title that it has', async () => {
  const { text } = await get('/llms.txt');
  const lines = [...text.matchAll(/\[([^\]]+)\]\(\/api\/docs\/([\w-]+)\.md\)(.*)$/gm)];
  const titles = lines.filter(([, , name]) => name !== 'all').map(([, title, name]) => [name, title]);
  const titleOf = (name: string): string | undefined => GUIDES.find((guide) => guide.name === name)?.title;
  expect(titles.length).toBeGreaterThan(10);
  expect(titles).toEqual(titles.map(([name]) => [name, titleOf(name!)]));
  for (const [, title, name, about] of lines) {
    if (name !== 'all') expect([title, about!.startsWith(': '), about!.length > 25]).toEqual([title, true, true]);
  }
});

it('a guide is answered as Markdown to who accepts that, as a page to browsers and to everybody else', async () => {
  const type = async (accept?: string): Promise<string> => {
    const asked = get('/api/docs/guides/rules');
    const { headers } = await (accept === undefined ? asked : asked.set('accept', accept));
    expect(headers.vary).toContain('Accept');
    return headers['content-type']!;
  };
  expect(await type('text/markdown')).toBe('text/markdown; charset=utf-8');
  expect(await type('text/markdown, text/html;q=0.9')).toBe('text/markdown; charset=utf-8');
  for (const accept of [undefined, '*/*', 'text/html,application/xhtml+xml,*/*;q=0.8']) {
    expect(await type(accept)).toBe('text/html; charset=utf-8');
  }
});

it.each([
  'nope.md',
  'rules',
  'rules.txt',
  'page.css.md',
  '..%2Fagents%2FSKILL.md',
  'agents/skill.md',
  'agents/..%2Fllms.txt',
])('GET /api/docs/%s is not there', async (name) => {
  expect((await get(`/api/docs/${name}`)).body.code).toBe('NOT_FOUND');
});

it('every error names a guide that is there, and one that explains the code where a guide does', () => {
  const document = buildApiDocument(ROUTE_LISTS, '0.0.0');
  const codes = Object.values(document.paths)
    .flatMap((path) => Object.values(path))
    .flatMap(({ responses }) => Object.values(responses))
    .flatMap(({ description }) => [...description.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, code]) => code!));
  const known = [...new Set(codes)];
  expect(known.length).toBeGreaterThan(150);
  const guides = [...readGuides()].filter(([name]) => name !== 'settings.md' && name !== 'commands.md');
  const wrong = known.filter((code) => {
    const page = pageOfError(code).replace('/api/docs/guides/', '') + '.md';
    if (!existsSync(join(GUIDES_FOLDER, page))) return true;
    const explaining = guides.filter(([, text]) => new RegExp(`\\b${code}\\b`).test(text)).map(([name]) => name);
    return explaining.length > 0 && !explaining.includes(page);
  });
  expect(wrong).toEqual([]);
});

it('an error reply has the path of its guide', async () => {
  const { body } = await get('/api/data/posts');
  expect([body.code, body.docs]).toEqual(['API_KEY_MISSING', '/api/docs/guides/troubleshooting']);
  expect((await get(body.docs as string)).status).toBe(200);
});
