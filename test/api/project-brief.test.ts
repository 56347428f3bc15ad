import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { editCollection, type Field } from '../world/collections.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { useTestApp } from '../helpers/use.js';
import { MAX_BRIEF_BYTES, describeProject, writeBrief } from '../world/projects.js';

const ADDRESS = 'https://api.example.com';

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'orders',
  access: 'server-only',
  fields: [
    { name: 'number', type: 'Number', required: true, min: 7 },
    { name: 'state', type: 'String', required: true, enum: ['open', 'paid'] },
    { name: 'margin', type: 'Number', hidden: true },
  ],
});
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [{ name: 'owner', type: 'String', stamp: 'user.id' }],
  rules: { read: 'doc.owner = user.id', create: 'user', update: 'nobody', delete: 'nobody' },
});
await editCollection(test.app, shop.project._id, 'users', {
  addFields: [{ name: 'username', type: 'String', required: true, minLength: 2, pattern: '^[a-z0-9]+$' }],
});

const read = async (key: string): Promise<string> => {
  const reply = await fetch(`${test.url}/api/schemas/brief.md`, { headers: { 'x-api-key': key } });
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8']);
  return reply.text();
};

describe('GET /api/schemas/brief.md', () => {
  it('says what there is and who may do what', async () => {
    const text = await read(shop.secret);
    expect(text).toContain('- orders\n  - server-only: only the secret key reads and writes it.\n');
    expect(text).toContain('  - read: doc.owner = user.id\n  - create: user\n  - update: nobody but the secret key\n');
    expect(text).toContain('margin Number');
  });

  it('tells a publishable key nothing of closed collections, nor the text of a rule', async () => {
    const text = await read(shop.publishable);
    expect(text).not.toMatch(/orders|margin|doc\.owner/);
    expect(text).toContain('- read: users whom its rule admits');
  });

  it('has twelve calls that work as they stand', async () => {
    const [, calls] = /```sh\n([\s\S]*?)```/.exec(await read(shop.secret))!;
    const lines = calls!.split('\n').filter((line) => line.startsWith('curl'));
    expect(lines).toHaveLength(12);
    const values: Record<string, string> = { ID: '', ACCESS_TOKEN: '' };
    for (const line of lines) {
      const script = `k="x-api-key: $KEY"\n${line.replace('curl', 'curl -sw "\\n%{http_code}"')}`;
      const env = { PATH: process.env.PATH, KEY: shop.secret, API: `${test.url}/api`, ...values };
      const [body, status] = (await promisify(execFile)('sh', ['-c', script], { env })).stdout.split(/\n(?=\d+$)/);
      expect([line, status, body]).toEqual([line, expect.stringMatching(/^20[01]$/), body]);
      const answer = JSON.parse(body!) as Record<string, string> & { data?: Record<string, string> };
      const data = answer.data ?? answer;
      if (values.ID === '' && data._id) values.ID = data._id;
      if (data.accessToken) values.ACCESS_TOKEN = data.accessToken;
    }
  });

  it.each([0, 1, 5, 40, 400])('has at most 4 kB with %i collections more', async (count) => {
    const described = await describeProject(test.app, shop.project, { isPublic: false });
    const [orders] = described.collections.filter(({ name }) => name === 'orders');
    const more = Array.from({ length: count }, (_, at) => ({ ...orders!, name: `collection-with-a-long-name-${at}` }));
    const text = writeBrief({ ...described, collections: [...described.collections, ...more] }, ADDRESS);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_BRIEF_BYTES);
    expect(text).toContain('## Limits');
  });

  it('has at most 4 kB where the last name just fits', async () => {
    const described = await describeProject(test.app, shop.project, { isPublic: false });
    const [orders] = described.collections.filter(({ name }) => name === 'orders');
    const sizes = Array.from({ length: 4_000 }, (_, length) => {
      const collections = [...described.collections, { ...orders!, name: 'x'.repeat(length) }];
      return Buffer.byteLength(writeBrief({ ...described, collections }, ADDRESS));
    });
    expect(Math.max(...sizes)).toBe(MAX_BRIEF_BYTES);
  });

  it('has at most 4 kB whatever is declared, and calls that a shell takes', async () => {
    const seed = openSeed('briefs');
    const { pick, below, chance } = openRandom(seed);
    const awkward = ["it's", '"', '$(id)', '`id`', 'a\nb', '\\', '!', 'é'.repeat(40), 'x'.repeat(300)];
    const described = await describeProject(test.app, shop.project, { isPublic: false });
    const [sample] = described.collections.filter(({ isUsers }) => !isUsers);
    const drawField = (_: unknown, at: number): Field => ({
      name: `field${at}${'x'.repeat(below(60))}`,
      type: pick(['String', 'Number', 'Boolean', 'Date', 'Ref', 'Array', 'Object'] as const),
      ...(chance(0.6) && { required: true }),
      ...(chance(0.3) && { enum: [pick(awkward)] }),
      ...(chance(0.2) && { minLength: below(2_000) }),
      ...(chance(0.2) && { minItems: below(500) }),
      ...(chance(0.2) && { pattern: '^a' }),
    });
    for (let n = 0; n < 300; n++) {
      const collections = described.collections.map((each) => ({
        ...(each.isUsers ? each : sample!),
        name: each.isUsers ? each.name : 'c'.repeat(1 + below(60)),
        fields: Array.from({ length: below(chance(0.2) ? 150 : 5) }, drawField),
        access: [`read: ${pick(awkward)}`],
      }));
      const text = writeBrief({ ...described, collections }, pick([ADDRESS, null, `https://${'a'.repeat(300)}`]));
      expect([seed, n, Buffer.byteLength(text) <= MAX_BRIEF_BYTES]).toEqual([seed, n, true]);
      const [, calls] = /```sh\n([\s\S]*?)```/.exec(text)!;
      // Each call is a line of one command: what was declared ends none, and begins none.
      expect([
        seed,
        n,
        calls!
          .trimEnd()
          .split('\n')
          .slice(2)
          .filter((line) => !line.startsWith('curl ')),
      ]).toEqual([seed, n, []]);
    }
  });
});
