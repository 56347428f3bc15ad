import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { COMMANDS, type CommandNode, type LoadedCommand } from '../world/cli.js';
import { openCliHome } from '../helpers/run-cli.js';
import { use } from '../helpers/use.js';

/** Where another thing is meant by a project, and why. */
const WITHOUT = new Map([
  ['project delete', 'deletes none that was named for other work'],
  ['secrets rotate', 'makes a new key for all projects, and names one with --tokens alone'],
  ['audit', 'looks for all unless told otherwise'],
  ['completion', 'asks in the shell, when a name is completed'],
]);

interface Leaf {
  words: string;
  examples: readonly string[];
  parameters: LoadedCommand['parameters'];
}

async function listLeaves(nodes: readonly CommandNode[], path: readonly string[] = []): Promise<Leaf[]> {
  const found = nodes.map(async (node) => {
    const here = [...path, node.name];
    if (node.commands) return listLeaves(node.commands, here);
    const { parameters, examples } = (await node.load()).default;
    return [{ words: here.join(' '), parameters, examples }];
  });
  return (await Promise.all(found)).flat();
}

const LEAVES = (await listLeaves(COMMANDS)).filter(
  ({ words, parameters }) => 'project' in parameters && !WITHOUT.has(words),
);

const home = use(openCliHome());
await home.bsvc(['project', 'create', 'shop']);
writeFileSync(join(home.dir, 'schema.json'), '{"format":"bsvc-schema/1","collections":[]}');
for (const name of ['posts.ndjson', 'users.json', 'welcome.html', 'welcome.txt', 'pipeline.json', 'operations.json']) {
  writeFileSync(join(home.dir, name), '[]');
}

/** The words of the first example without its project, and without what a shell would do beside it. */
function wordsOf({ words, examples, parameters }: Leaf): string[] {
  const example = examples.find((line) => line.startsWith(`bsvc ${words}`)) ?? `bsvc ${words}`;
  const all = [...example.replace(/ [|<>].*/, '').matchAll(/'([^']*)'|"([^"]*)"|[^\s\\]+/g)];
  const given = all.map(([whole, single, double]) => single ?? double ?? whole).slice(1);
  const at = given.indexOf('--project');
  if (at >= 0) given.splice(at, 2);
  else if (parameters.project!.kind === 'argument') given.splice(words.split(' ').length, 1);
  return 'yes' in parameters && !given.includes('--yes') ? [...given, '--yes'] : given;
}

it.each(LEAVES.map((leaf) => [leaf.words, leaf] as const))(
  'BSVC_PROJECT names the project of bsvc %s',
  async (_words, leaf) => {
    const env = { BSVC_PROJECT: 'nowhere', R2_SECRET: 'a secret' };
    const { code, stderr } = await home.bsvc(wordsOf(leaf), { env, stdin: 're_key' });
    expect([code, stderr]).toEqual([1, expect.stringContaining('nowhere') as string]);
  },
);

it('is asked of most commands', () => {
  expect(LEAVES.length).toBeGreaterThan(50);
});
