import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  COMMANDS,
  type CommandEntry,
  type CommandNode,
  type Context,
  type LoadedCommand,
  type Loss,
  isAudited,
} from '../world/cli.js';
import { openCliHome, runCli } from '../helpers/run-cli.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

/** Words of commands and options that take something away. */
const TAKING = /\b(delete|remove|clear|revoke|drop|purge|forget|prune|(?<!the )trash)\b/;

/** Commands with such words that do not ask, and why (decision 54). */
const KEPT: Record<string, string> = {
  'collection edit':
    'values of a dropped field stay stored, declaring it again shows them; of changes that go a follower reads the collection again',
  'rules check': 'nothing is changed: it says what a change would do',
  'user update':
    'a role that was taken away can be given again, a user signs in again; a reset of MFA waits for the delay of the project',
  'operator token': 'an operator signs in again; tokens, which end by themselves, are given out anew',
};

interface Leaf {
  words: string;
  summary: string;
  command: LoadedCommand;
}

const LEAVES = await listLeaves(COMMANDS);
const ASKING = LEAVES.filter(({ command }) => command.destroys !== undefined);
const ALWAYS = ASKING.filter(({ command }) => command.destroys === 'always');

const home = use(openCliHome());
const env = { BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed', BSVC_BCRYPT_COST: '4' };
const EMAIL = 'ann@example.com';

/** Arguments that name something; whatever is not listed need not be there to be asked about. */
const NAMED: Record<string, string> = { user: EMAIL, operator: EMAIL, project: 'shop', provider: 'github', path: 'x' };

async function bsvc(...argv: string[]): Promise<string> {
  const { code, stdout, stderr } = await home.bsvc(argv, { env, stdin: 'a-password\n' });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

await bsvc('project', 'create', 'shop');
await bsvc('collection', 'add', 'posts', '--project', 'shop', '--flexible');
await bsvc('user', 'create', '--project', 'shop', '--email', EMAIL, '--password-stdin');
await bsvc('operator', 'add', '--email', EMAIL, '--password-stdin');

describe('a command that takes something away for good', () => {
  it('says so in its definition, or is listed with the reason', () => {
    const telling = LEAVES.filter((leaf) => TAKING.test(tellWords(leaf)));
    expect(telling.length).toBeGreaterThan(15);
    const silent = telling.filter(({ command }) => !command.destroys).map(({ words }) => words);
    expect(silent.toSorted()).toEqual(Object.keys(KEPT).toSorted());
  });

  it.each(ASKING)('$words: has --yes, explains it, and is recorded', async ({ words, command }) => {
    const { stdout } = await runCli([...words.split(' '), '--help']);
    expect(stdout).toContain('--yes  ');
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /(cannot be undone\. Type the name|would be lost or access loosened)[^.]*--yes/,
    );
    expect(isAudited(command, NAMED)).toBe(true);
  });

  it.each(ALWAYS)('$words: off a terminal and without --yes it is exit 2 before it opens a store', async (leaf) => {
    const data = join(home.dir, 'never');
    for (const more of [[], ['--no-input'], ['--json']]) {
      const argv = [...leaf.words.split(' '), ...Object.values(argumentsOf(leaf)), '--data-dir', data, ...more];
      const { code, stdout, stderr } = await home.bsvc(argv, { env: { BSVC_PROJECT: 'shop' } });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain('bsvc: This cannot be undone: confirm it with --yes.\n');
    }
    expect(existsSync(data)).toBe(false);
  });

  it.each(ALWAYS)('$words: asks for a name, by a sentence, before it does anything', async ({ words, command }) => {
    const losses: Loss[] = [];
    const acting = async (app: Awaited<ReturnType<Context['app']>>): Promise<unknown> => {
      const context = {
        app: () => Promise.resolve(app),
        layers: [],
        confirm: (loss: Loss) => {
          losses.push(loss);
          return Promise.reject(new Error('not agreed'));
        },
      } as Partial<Context> as Context;
      return command.run(context, { ...argumentsOf({ command }), project: 'shop' });
    };
    const before = await readStore();
    await expect(withApp(env, acting)).rejects.toThrow('not agreed');
    expect(losses).toEqual([
      { what: expect.stringMatching(/^[A-Z].*\.$/) as string, name: expect.any(String) as string },
    ]);
    expect({ words, name: losses[0]!.name }).not.toEqual({ words, name: '' });
    expect(await readStore()).toEqual(before);
  });
});

describe('a command that takes something away at times', () => {
  const declared = '{"format":"bsvc/1","projects":[{"name":"shop","collections":[]}]}';
  const write = (name: string, text: string): string => {
    writeFileSync(join(home.dir, name), text);
    return name;
  };
  const insertOne = async (): Promise<string[]> => {
    await bsvc('data', 'insert', 'posts', '{"n":1}', '--project', 'shop');
    return ['--project', 'shop'];
  };
  const CASES: Record<string, () => Promise<string[]>> = {
    apply: () => Promise.resolve(['-f', write('bsvc.json', declared), '--prune']),
    'collection rls': async () => {
      await bsvc('collection', 'rls', 'posts', '--project', 'shop', '--server-only');
      return ['posts', '--project', 'shop', '--public'];
    },
    'data update': async () => ['posts', '{"n":2}', '--filter', 'n=1', ...(await insertOne())],
    'data delete': async () => ['posts', '--filter', 'n=1', ...(await insertOne())],
    file: () => Promise.resolve(['--project', 'shop', '--delete', 'x']),
    restore: async () => {
      await bsvc('backup', '--out', 'all.backup');
      return ['all.backup'];
    },
  };

  /** What they ask about can be taken back, but opens data to others, or is much at once. */
  const REVERSIBLE = new Set(['collection rls', 'data delete']);

  /** One asks about deliveries that wait, the other needs a user: test/cli/webhook.test.ts, test/cli/erase.test.ts. */
  const ELSEWHERE = ['webhook edit', 'user delete'];

  it('is tried here', () => {
    const sometimes = ASKING.filter(({ command }) => command.destroys === 'at times').map(({ words }) => words);
    expect(sometimes.toSorted()).toEqual([...Object.keys(CASES), ...ELSEWHERE].toSorted());
  });

  it.each(Object.keys(CASES))('%s: is exit 2 off a terminal without --yes, and changes nothing', async (words) => {
    const argv = [...words.split(' '), ...(await CASES[words]!())];
    const before = await readStore();
    const { code, stdout, stderr } = await home.bsvc(argv, { env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const missing = REVERSIBLE.has(words) ? 'Nothing was changed: agree' : 'This cannot be undone: confirm it';
    expect(stderr).toContain(`${missing} with --yes`);
    expect(await readStore()).toEqual(before);
  });
});

/** The parts of a store that the commands above would take away. */
async function readStore(): Promise<string[]> {
  const inShop = ['--project', 'shop', '--json'];
  return [
    await bsvc('project', 'list', '--json'),
    await bsvc('key', 'list', ...inShop),
    await bsvc('project', 'export', 'shop', '--json'),
    await bsvc('user', 'list', ...inShop),
    await bsvc('operator', 'list', '--json'),
    await bsvc('data', 'export', 'posts', ...inShop.slice(0, 2)),
  ];
}

function argumentsOf({ command }: Pick<Leaf, 'command'>): Record<string, string> {
  const named = Object.entries(command.parameters).filter(([, { kind, optional }]) => kind === 'argument' && !optional);
  return Object.fromEntries(named.map(([name]) => [name, NAMED[name] ?? 'x']));
}

/** The words of a command, its summary and its options, and the texts of options that take no value. */
function tellWords({ words, summary, command }: Leaf): string {
  const options = Object.values(command.parameters).filter(({ kind }) => kind === 'option');
  const texts = options.map((option) =>
    /[<[]/.test(option.flags) ? option.flags : `${option.flags} ${option.description}`,
  );
  return [words, summary, ...texts].join('\n');
}

async function listLeaves(nodes: readonly CommandNode[], path: readonly string[] = []): Promise<Leaf[]> {
  const found = nodes.map(async (node) => {
    const here = [...path, node.name];
    if (node.commands) return listLeaves(node.commands, here);
    const { default: command } = await (node as CommandEntry).load();
    return [{ words: here.join(' '), summary: node.summary, command }];
  });
  return (await Promise.all(found)).flat();
}
