import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { GUIDES, GUIDES_PREFIX } from '../../world/app.js';
import { readExamples, readGuides } from '../../helpers/guide-examples.js';
import { useTestApp } from '../../helpers/use.js';

const guides = readGuides();

const test = await useTestApp();

const open = (name: string) => request(test.server).get(`${GUIDES_PREFIX}/${name}`);

describe(`GET ${GUIDES_PREFIX}/:guide`, () => {
  it('serves every file of templates/docs, under its own title', () => {
    expect(GUIDES.map(({ name }) => `${name}.md`).sort()).toEqual([...guides.keys()].sort());
    for (const { name, title } of GUIDES) expect(guides.get(`${name}.md`)).toMatch(new RegExp(`^# ${title}\n`));
  });

  it.each(GUIDES.map(({ name }) => name))('shows all of the guide, with nothing left of Markdown: %s', async (name) => {
    const { status, headers, text } = await open(name);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const main = /<main[^>]*>([\s\S]*)<\/main>/.exec(text)![1]!;
    const examples = readExamples(guides.get(`${name}.md`)!);
    expect(main.match(/<pre tabindex="0">/g)?.length ?? 0).toBe(
      examples.length + examples.filter(({ shown }) => shown !== null).length,
    );
    const prose = main.replace(/<pre[^>]*>[\s\S]*?<\/pre>/g, '').replace(/<code>[^<]*<\/code>/g, '');
    expect(prose).not.toMatch(/\*\*|`|\]\(|^\||^#|^- |&lt;!--/m);
  });

  it('links only to what is there, and loads nothing from elsewhere', async () => {
    const known = new Set(['/api/docs', ...GUIDES.map(({ name }) => `${GUIDES_PREFIX}/${name}`)]);
    for (const { name } of GUIDES) {
      const { headers, text } = await open(name);
      const targets = [...text.matchAll(/<a[^>]* href="([^"#]+)[^"]*"/g)].map(([, target]) => target!);
      expect(targets.filter((target) => !known.has(target) && !target.startsWith('https://'))).toEqual([]);
      const loaded = [...text.matchAll(/(?:src|<link[^>]* href)="([^"]+)"/g)].map(([, address]) => address);
      expect(loaded).toEqual(['/api/docs/page.css', '/api/docs/page.js']);
      expect(text).not.toMatch(/<script(?![^>]* src)|<style| style="| on\w+="/);
      expect(headers['content-security-policy']).toContain("default-src 'none'");
    }
  });

  it('names the guides to who asks for another', async () => {
    const { status, body } = await open('no-such');
    expect([status, body.code]).toEqual([404, 'NOT_FOUND']);
    expect(body.message).toContain('getting-started, first-app');
  });

  it('is not sent again to who has it', async () => {
    const first = await open('email');
    const again = await open('email').set('If-None-Match', first.headers.etag!);
    expect([again.status, again.text]).toEqual([304, '']);
  });
});
