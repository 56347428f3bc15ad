import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMANDS, type CommandEntry, type CommandNode, type LoadedCommand } from '../world/cli.js';
import { readTextFileSync } from '../../src/text.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const at = (name: string): string => join(home.dir, name);

/** Parameters that name a file which is written, a directory, or a file that is no text. */
const NO_TEXT = /--(out|to|from)\b|<(dir|place)>/;
const NO_TEXT_OF = new Set(['restore']);
const READS = /<file>|^file$/;

/** Valid arguments of the other parameters. */
const ARGUMENTS: Record<string, string[]> = {
  'collection add': ['extra'],
  'data import': ['posts'],
  'data query': ['posts'],
  'data insert': ['posts'],
  'data update': ['posts'],
  'mail template set': ['welcome'],
  'user create': ['--email', 'new{n}@example.test'],
  'user update': ['ann@example.test'],
  'user social set': ['google', '--client-id', 'x', '--redirect-url', 'https://shop.example/in'],
  'byok bucket set': ['--bucket', 'b', '--region', 'r', '--access-key-id', 'k'],
  generate: ['types'],
  'operator add': ['--email', 'new{n}@example.test', '--role', 'viewer'],
};
// Nothing listens there: the key is read before the server is asked.
const OF_SERVER = ['--url', 'http://127.0.0.1:9'];
const MORE: Record<string, string[]> = {
  generate: OF_SERVER,
  'data query': ['--watch', '--once'],
  'data update': ['--filter', 'title=x', '--yes'],
  'mail template set': ['--subject', 'x'],
};

interface Reading {
  name: string;
  line: (file: string) => string[];
  stdin: boolean;
}

const READINGS: Reading[] = (await listLeaves(COMMANDS)).flatMap(([words, command]) =>
  Object.values(command.parameters).flatMap((parameter): Reading[] => {
    const before = [...words.split(' '), ...(ARGUMENTS[words] ?? [])];
    const more = MORE[words] ?? [];
    const { flags, kind } = parameter;
    const option = /--[\w-]+/.exec(flags)?.[0];
    if (kind === 'secret') {
      return [{ name: `${words} --${flags}-stdin`, line: () => [...before, ...more, `--${flags}-stdin`], stdin: true }];
    }
    if (NO_TEXT.test(flags) || NO_TEXT_OF.has(words)) return [];
    if (READS.test(flags)) {
      // Besides a file of its own, such as the users that the parameters belong to.
      const own = ['data', 'import', 'users', 'users.json', '--from', 'firebase'];
      const rest = option === '--hash-config' ? own : before;
      const given = (file: string): string[] => [...rest, ...(option ? [option, file] : [file]), ...more];
      return [{ name: `${words} ${option ?? flags}`, line: given, stdin: false }];
    }
    if (kind === 'argument' && /standard input/.test(parameter.description)) {
      return [{ name: `${words} -`, line: () => [...before, '-', ...more], stdin: true }];
    }
    if (option && /standard input/.test(parameter.description)) {
      return [{ name: `${words} ${option} -`, line: () => [...before, option, '-'], stdin: true }];
    }
    return [];
  }),
);

const env = { BSVC_PROJECT: 'shop' };
let runs = 0;
const run = ({ line, stdin }: Reading, bytes: Buffer, name = 'given.json') => {
  writeFileSync(at(name), bytes);
  // New accounts have another address each time.
  runs += 1;
  const words = line(name).map((word) => word.replace('{n}', String(runs)));
  return home.bsvc([...words, '--json'], { env, ...(stdin && { stdin: bytes }) });
};

expect(await home.bsvc(['project', 'create', 'shop'])).toMatchObject({ code: 0 });
await home.bsvc(['collection', 'add', 'posts', '--field', 'title:String'], { env });
writeFileSync(at('users.json'), '[]');
const stdin = 'long enough\n';
await home.bsvc(['user', 'create', '--email', 'ann@example.test', '--password-stdin'], { env, stdin });
const operator = ['operator', 'add', '--email', 'op@example.test', '--role', 'viewer', '--password-stdin'];
await home.bsvc(operator, { env, stdin });

describe('text from outside', () => {
  it('is read by many commands', () => {
    expect(READINGS.length).toBeGreaterThan(20);
  });

  it.each(READINGS)('$name: refuses what is not UTF-8, and names it', async (reading) => {
    const latin = Buffer.from('{"title":\n"Gr\u00fc\u00dfe"}', 'latin1');
    const wide = Buffer.from('\ufeff{"title":"x"}', 'utf16le');
    for (const [bytes, name] of [
      [latin, 'UTF-8'],
      [wide.subarray(2), 'UTF-16'],
    ] as const) {
      const { code, stdout, stderr } = await run(reading, bytes);
      expect({ code, text: stdout + stderr }).not.toMatchObject({ code: 0 });
      expect(stdout + stderr).toContain(name);
      expect(stdout + stderr).not.toContain('INTERNAL');
    }
  });

  it.each(READINGS)('$name: does with a byte order mark what it does without', async (reading) => {
    const text = '{"title":"x"}';
    const outcomes = [];
    for (const bytes of [Buffer.from(`\ufeff${text}`), Buffer.from(text)]) {
      const { code, stderr } = await run(reading, bytes);
      outcomes.push([code, stderr.replaceAll(/"requestId":"[^"]*"/g, '')]);
    }
    expect(outcomes[0]).toEqual(outcomes[1]);
  });
});

describe('settings from files', () => {
  const settings = async (words: string[] = [], more: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await home.bsvc(['settings', '--json', ...words], { env: more });
    const listed = code === 0 ? (JSON.parse(stdout) as { env: string; value: unknown; source: string }[]) : [];
    return { code, stderr, of: (name: string) => listed.find((each) => each.env === name) };
  };

  it('an env file may begin with a byte order mark, and must be UTF-8', async () => {
    writeFileSync(at('marked.env'), '\ufeffBSVC_MAIL_FROM=a@b.test\n');
    expect((await settings(['--env-file', 'marked.env'])).of('BSVC_MAIL_FROM')?.value).toBe('a@b.test');
    writeFileSync(at('latin.env'), Buffer.from('# \u00fc\nBSVC_MAIL_FROM=a@b.test\n', 'latin1'));
    expect(await settings(['--env-file', 'latin.env'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('latin.env is not UTF-8 (line 1, byte 3)') as string,
    });
    writeFileSync(at('wide.env'), Buffer.from('\ufeffBSVC_MAIL_FROM=a@b.test\n', 'utf16le'));
    expect((await settings(['--env-file', 'wide.env'])).stderr).toContain('wide.env is UTF-16');
  });

  it('so must the file of a secret', async () => {
    const path = at('key.txt');
    writeFileSync(path, `\ufeff${'k'.repeat(43)}\n`);
    const marked = await settings([], { BSVC_SECRET_KEY_FILE: path });
    expect(marked).toMatchObject({ code: 0, stderr: '' });
    writeFileSync(path, Buffer.from('\u00fc'.repeat(43), 'latin1'));
    const refused = await settings([], { BSVC_SECRET_KEY_FILE: path });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('is not UTF-8') as string });
  });

  it('names line and byte of the first wrong one, also at the end', () => {
    for (const [bytes, place] of [
      [Buffer.from('a\nb\xff\xffc', 'latin1'), 'line 2, byte 4'],
      [Buffer.from('a\nbc\xe2\x82', 'latin1'), 'line 2, byte 6'],
    ] as const) {
      writeFileSync(at('x.txt'), bytes);
      expect(() => readTextFileSync(at('x.txt'))).toThrow(place);
    }
  });
});

async function listLeaves(
  nodes: readonly CommandNode[],
  path: readonly string[] = [],
): Promise<[words: string, command: LoadedCommand][]> {
  const found = nodes.map(async (node): Promise<[string, LoadedCommand][]> => {
    const here = [...path, node.name];
    if (node.commands) return listLeaves(node.commands, here);
    return [[here.join(' '), (await (node as CommandEntry).load()).default]];
  });
  return (await Promise.all(found)).flat();
}
