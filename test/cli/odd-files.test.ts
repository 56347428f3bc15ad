import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, type CommandEntry, type CommandNode, type LoadedCommand } from '../world/cli.js';
import { RESERVED_KEYS } from '../world/documents.js';
import { openCliHome, runCli } from '../helpers/run-cli.js';
import { openSmallDisk, type SmallDisk } from '../../src/engine/test/helpers/small-disk.js';

interface Leaf {
  words: string;
  command: LoadedCommand;
}

const LEAVES = await listLeaves(COMMANDS);

/** Words of options and arguments that stand for a file or a directory. */
const FILE = /<(file|dir|place|path|folder)>|^(file|backup|folder)$/;

/** A folder that a service goes on to serve, not a file of the command: test/http/public-folder. */
const SERVED = '--public';

/** Its paths are those of uploaded files. */
const UPLOADED = 'file';

/** Every word of a command line that names a file, with the rest of that line. */
const PLACES = LEAVES.flatMap(({ words, command }) =>
  Object.values(command.parameters)
    .filter(({ flags }) => FILE.test(flags) && !flags.includes(SERVED) && words !== UPLOADED)
    .map((parameter) => {
      const flag = /--\S+/.exec(parameter.flags)?.[0];
      const name = `${words} ${flag ?? `<${parameter.flags}>`}`;
      return { name, words, flag, line: (path: string) => lineOf(words, command, flag, path) };
    }),
);

/** What a command needs besides the file. */
const BESIDES: Record<string, string[]> = {
  'mail template set': ['--subject', 'x'],
  'service install': ['--data-dir', 'made'],
  restore: ['--yes'],
};
/** Commands that take a file instead of their arguments. */
const INSTEAD = new Set(['rules check']);
const ARGUMENTS: Record<string, string> = { collection: 'posts', project: 'shop', name: 'welcome', what: 'client' };
/** What an option needs besides its file. */
const WITH: Record<string, string[]> = {
  '--cursor-file': ['--watch', '--once'],
  '--hash-config': ['--from', 'firebase'],
};

function lineOf(words: string, { parameters }: LoadedCommand, flag: string | undefined, path: string): string[] {
  const given = flag === '--hash-config' ? { ...ARGUMENTS, collection: 'users' } : ARGUMENTS;
  const named = Object.entries(parameters)
    .filter(([, { kind }]) => kind === 'argument' && !INSTEAD.has(words))
    .flatMap(([name, each]) => (FILE.test(each.flags) ? [path] : name in given ? [given[name]!] : []));
  const option = flag ? [flag, path, ...(WITH[flag] ?? [])] : [];
  return [...words.split(' '), ...named, ...option, ...(BESIDES[words] ?? [])];
}

const home = openCliHome();
const env = { BSVC_PROJECT: 'shop' };
const at = (name: string): string => join(home.dir, name);
let disk: SmallDisk | null;

beforeAll(async () => {
  disk = await openSmallDisk(1);
  await home.bsvc(['project', 'create', 'shop']);
  await home.bsvc(['collection', 'add', 'posts', '--field', 'title:String'], { env });
  const stdin = `${JSON.stringify({ title: 'x'.repeat(100) })}\n`;
  await home.bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson'], { env, stdin });
  mkdirSync(at('folder.json'));
  symlinkSync('loop.json', at('loop.json'));
});
afterAll(async () => {
  home.remove();
  await disk?.remove();
});

/** The file was read, and what it holds is refused by rules that know of no file. */
const OF_CONTENT = new Set(['LINES_REFUSED', 'INVALID_TEMPLATE']);

const ODD: [what: string, path: string][] = [
  ['a directory', 'folder.json'],
  ['below a file', 'plain.json/below.json'],
  ['an empty file', 'empty.json'],
  ['some other file', 'plain.json'],
  ['a link to itself', 'loop.json'],
  ['a name that is too long', `${'x'.repeat(300)}.json`],
  ['a place that takes none', '/proc/none/below'],
  ['nothing', ''],
];

describe('a command that is given a file', () => {
  it('is one of many', () => {
    expect(PLACES.length).toBeGreaterThan(12);
  });

  it.each(PLACES)('$name: is never surprised by it, and names it where it is refused', async ({ name, line }) => {
    for (const [what, path] of ODD) {
      writeFileSync(at('plain.json'), 'neither JSON nor a backup');
      writeFileSync(at('empty.json'), '');
      const { code, stderr } = await home.bsvc([...line(path), '--json'], { env });
      const seen = { name, what, code, stderr };
      expect(seen).not.toMatchObject({ stderr: expect.stringContaining('INTERNAL') as string });
      expect([0, 1, 2], JSON.stringify(seen)).toContain(code);
      if (code === 0) continue;
      const said = JSON.parse(stderr.trim().split('\n').at(-1)!) as { code: string; message: string };
      if (OF_CONTENT.has(said.code)) continue;
      const about = path.split('/')[0]!.slice(0, 40);
      expect(said.message, JSON.stringify(seen)).toContain(about);
    }
  });

  it('a data directory that cannot be looked at is not told as one without a store', async () => {
    const look = (dir: string) => home.bsvc(['project', 'list', '--data-dir', dir]);
    expect((await look('plain.json')).stderr).toContain('There is no database in');
    expect((await look('nowhere')).stderr).toContain('There is no database in');
    expect((await look('loop.json')).stderr).toMatch(
      /^bsvc: The data directory .*loop\.json cannot be written to\.\n$/,
    );
  });

  it('service install makes nothing where it cannot write a unit', async () => {
    const { code } = await home.bsvc(['service', 'install', '--out', 'plain.json', '--data-dir', 'unmade'], { env });
    expect([code, existsSync(at('unmade'))]).toEqual([1, false]);
  });
});

describe('a file that a command writes', () => {
  const written = PLACES.filter(
    ({ flag, words }) =>
      // A unit has a place of its own, the client is a folder.
      (flag === '--out' || flag === '--cursor-file') && words !== 'service install' && words !== 'generate',
  );

  it.for(written)(
    '$name: on a full disk the old one stays as it was, and nothing beside it',
    async ({ line }, { skip }) => {
      // Only root may mount a small disk.
      if (!disk) return skip();
      const path = join(disk.path, 'old.json');
      const argv = line(path);
      expect(await home.bsvc(argv, { env })).toMatchObject({ code: 0, stderr: '' });
      const old = readFileSync(path, 'utf8');
      const filler = join(disk.path, 'filler');
      try {
        writeFileSync(filler, Buffer.alloc(2 * 1024 * 1024));
      } catch {
        // Full, as it is to be.
      }
      await home.bsvc(['data', 'insert', 'posts', '{"title":"more"}'], { env });
      const { code, stderr } = await home.bsvc(argv, { env });
      expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('disk is full') as string });
      expect(readFileSync(path, 'utf8')).toBe(old);
      expect(readdirSync(disk.path).toSorted()).toEqual(['filler', 'old.json']);
      for (const name of readdirSync(disk.path)) rmSync(join(disk.path, name));
    },
  );
});

describe('--filter', () => {
  const filtering = LEAVES.filter(({ command }) => 'filters' in command.parameters);

  it.each(filtering)(
    '$words: refuses what is no condition, and names options alone that there are',
    async ({ words }) => {
      const { stdout: help } = await runCli([...words.split(' '), '--help']);
      for (const name of RESERVED_KEYS) {
        const { code, stderr } = await home.bsvc([...words.split(' '), 'posts', '--filter', `${name}=1`], { env });
        expect({ name, code }).toEqual({ name, code: 2 });
        expect(stderr).toContain(`--filter ${name}=… is no condition`);
        const [, option] = /there is (--[\w-]+)/.exec(stderr) ?? [];
        if (option) expect(help).toContain(`  ${option} `);
      }
    },
  );
});

async function listLeaves(nodes: readonly CommandNode[], path: readonly string[] = []): Promise<Leaf[]> {
  const found = nodes.map(async (node) => {
    const here = [...path, node.name];
    if (node.commands) return listLeaves(node.commands, here);
    return [{ words: here.join(' '), command: (await (node as CommandEntry).load()).default }];
  });
  return (await Promise.all(found)).flat();
}
