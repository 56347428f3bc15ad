import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPackageFile } from '../world/app.js';
import { readExamples } from '../helpers/guide-examples.js';
import { findFreePort } from '../helpers/listen.js';
import { runBinary, startService, type RunningService } from '../helpers/run-binary.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';

// What a coding agent does that follows SKILL.md to the letter, from an empty folder, and understands nothing but JSON:
// every command of the skill, in its order, for the application of the skill and for another one of the guides.
const skill = readExamples(readPackageFile('templates', 'agents', 'SKILL.md'));
const fileIn = (examples: typeof skill, name: string): string => examples.find(({ file }) => file === name)!.text;

interface App {
  name: string;
  declaration: string;
  tests: string;
  /** What somebody stores by requests of an app; `ids` are known to the stranger too. */
  fill: (ask: Ask) => Promise<{ ids: Record<string, string> }>;
  /** Texts of it, of which a stranger sees none. */
  texts: string[];
}
type Ask = (method: string, path: string, body?: object) => Promise<Record<string, unknown>>;

const FIRM = '66f0c0ffee0ddba11c0de001';
const APPS: App[] = [
  {
    name: 'lists',
    declaration: fileIn(skill, 'bsvc.yaml'),
    tests: fileIn(skill, 'rules.test.yaml'),
    async fill(ask) {
      const { _id: lists } = await ask('POST', 'data/lists', { title: 'Party' });
      const { _id: items } = await ask('POST', 'data/items', { list: lists, text: 'Bread' });
      return { ids: { lists: lists as string, items: items as string } };
    },
    texts: ['Party', 'Bread'],
  },
  {
    name: 'crm',
    declaration: readPackageFile('templates', 'examples', 'crm', 'bsvc.yaml'),
    tests: readPackageFile('templates', 'examples', 'crm', 'rules.test.yaml'),
    async fill(ask) {
      const { _id: user } = await ask('GET', 'userAuth/me');
      await ask('POST', 'batch', {
        operations: [
          { op: 'insert', collection: 'firms', body: { _id: FIRM, name: 'Oak' } },
          { op: 'insert', collection: 'staff', body: { firm: FIRM, user, role: 'owner' } },
        ],
      });
      const { _id: contacts } = await ask('POST', 'data/contacts', { firm: FIRM, name: 'Otto', remark: 'call late' });
      const { data } = (await ask('GET', 'data/staff')) as { data: { items: { _id: string }[] } };
      return { ids: { firms: FIRM, staff: data.items[0]!._id, contacts: contacts as string } };
    },
    texts: ['Oak', 'Otto', 'call late', 'owner'],
  },
];

/** The commands of the skill for a project of another name, each of which has to answer JSON. */
function commandsFor(name: string): string[][] {
  const lines = skill.filter(({ language }) => language === 'sh').flatMap(({ text }) => text.split('\n'));
  const commands = lines.flatMap((line) => /(?:^|\$\()bsvc ([^>|&)]+)/.exec(line)?.[1]?.trim() ?? []);
  return commands
    .filter((command) => command !== 'serve')
    .map((command) => command.replace('--quiet', '').replace(/(--project|brief) lists/, `$1 ${name}`))
    .map((command) => [...command.split(/\s+/).filter((word) => word !== '' && word !== '--json'), '--json']);
}

it('/llms.txt begins with lines that lead from an empty folder to a project, typed as they stand', async () => {
  const dir = await openTempDir();
  try {
    const llms = readPackageFile('templates', 'agents', 'llms.txt');
    const lines = [...llms.matchAll(/^ {4}(\S.*)$/gm)].map(([, line]) => line!);
    expect(lines).toHaveLength(3);
    const port = await findFreePort();
    const health = `curl -sf --retry 40 --retry-delay 1 --retry-connrefused http://localhost:${port}/api/health`;
    const { code, output } = await runShell(
      dir.path,
      ['-c', `trap 'kill $(jobs -p)' EXIT\n${lines.join(' \n')}\n${health}`],
      { BSVC_PORT: `${port}`, BSVC_LOG_LEVEL: 'warn' },
      100_000,
    );
    expect([code, output]).toEqual([0, expect.stringMatching(/"publishable":"pk_live_[^"]+"[^]*"status":"ok"/)]);
  } finally {
    await dir.remove();
  }
});

describe.each(APPS)('SKILL.md, followed literally for $name', ({ name, declaration, tests, fill, texts }) => {
  let dir: TempDir;
  let service: RunningService;
  const answers = new Map<string, Record<string, unknown>>();

  beforeAll(async () => {
    dir = await openTempDir();
    const folder = join(dir.path, 'empty');
    mkdirSync(folder);
    writeFileSync(join(folder, 'bsvc.yaml'), declaration);
    writeFileSync(join(folder, 'rules.test.yaml'), tests);
    const env = { BSVC_DATA_DIR: join(folder, 'bsvc-data'), BSVC_BCRYPT_COST: '4' };
    service = await startService(['serve', '--port', '0'], env);
    for (const words of commandsFor(name)) {
      const { code, stdout, stderr } = await runBinary(words, { env, cwd: folder });
      expect([words, code, stderr]).toEqual([words, 0, '']);
      answers.set(words.slice(0, 2).join(' '), JSON.parse(stdout) as Record<string, unknown>);
    }
  });
  afterAll(async () => {
    await service.stop();
    await dir.remove();
  });

  it('makes the project, and every case of its rules holds', () => {
    expect([...answers.keys()]).toEqual([
      ...['apply -f', 'rules test', 'rules check', 'project brief', 'key create', 'generate types'],
    ]);
    expect(answers.get('rules test')).toMatchObject({ unmet: [] });
    expect(answers.get('rules check')).toMatchObject({ findings: [], loosens: [] });
    const exposed = answers.get('rules check')!.exposed as { kind: string; what: string }[];
    for (const { what } of exposed) expect(what).not.toMatch(/everyone.*(read|create|change|delete)/);
  });

  it('lets no stranger read or write anything, signed in or not', async () => {
    const { value: key } = answers.get('key create') as { value: string };
    const asked = async (token: string | null, method: string, path: string, body?: object): Promise<Response> =>
      fetch(`${service.ready.url}/api/${path}`, {
        method,
        headers: {
          ...{ 'x-api-key': key, 'content-type': 'application/json' },
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
    const signUp = async (who: string): Promise<string> => {
      const account = { email: `${who}@example.com`, password: 'correct horse battery' };
      const reply = await asked(null, 'POST', 'userAuth/signup', account);
      return ((await reply.json()) as { accessToken: string }).accessToken;
    };
    const [ada, eve] = [await signUp('ada'), await signUp('eve')];
    const { ids } = await fill(async (...request) => {
      const reply = await asked(ada, ...request);
      const answer = (await reply.json()) as Record<string, unknown>;
      expect([request[1], reply.ok, answer]).toEqual([request[1], true, answer]);
      return answer;
    });

    for (const [collection, id] of Object.entries(ids)) {
      const at = `data/${collection}`;
      const own = await (await asked(ada, 'GET', at)).text();
      expect(own).toContain(id);
      const requests: [method: string, path: string, body?: object][] = [
        ...[at, `${at}/${id}`, `${at}?count=true`, `${at}?include_deleted=true`, `${at}?_id=${id}`].map(
          (path): [string, string] => ['GET', path],
        ),
        ['GET', `${at}/changes`],
        ['POST', `${at}/aggregate`, { pipeline: [{ $match: {} }] }],
        ['PATCH', `${at}/${id}`, { $unset: ['anything'] }],
        ['DELETE', `${at}/${id}`],
      ];
      for (const token of [null, eve]) {
        for (const [method, path, body] of requests) {
          const reply = await asked(token, method, path, body);
          const text = await reply.text();
          const leaked = texts.filter((each) => text.includes(each));
          const hasWritten = reply.ok && ['PATCH', 'DELETE'].includes(method);
          expect([method, path, leaked, hasWritten]).toEqual([method, path, [], false]);
          if (path.endsWith('count=true') && reply.ok) expect(text).toContain('"count":0');
        }
      }
      expect(await (await asked(ada, 'GET', at)).text()).toBe(own);
    }
  });
});
