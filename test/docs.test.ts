import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { CommandNode } from '../cli/shell/command.js';
import { COMMANDS } from '../cli/commands/index.js';
import { projectsFileSchema } from '../src/features/declaration/project-declaration.js';
import { renewReadme } from './helpers/readme-tables.js';
import { openCliHome, runCli } from './helpers/run-cli.js';

const path = join(import.meta.dirname, '..', 'README.md');
const readme = readFileSync(path, 'utf8');
const home = openCliHome();
afterAll(home.remove);

/** Every command that the text names, in a sentence or to be pasted, as words. */
function commandsIn(text: string): string[][] {
  const pasted = [...text.matchAll(/```sh\n([\s\S]*?)```/g)]
    .map(([, block]) => block!.replaceAll('\\\n', ' '))
    .join('\n');
  const found = [...text.matchAll(/`bsvc ([a-z][^`\n]*)`/g), ...pasted.matchAll(/\bbsvc ([a-z][^\n)&|]*)/g)];
  return [...new Set(found.map(([, words]) => words!.trim()))].map((words) => words.split(/\s+/));
}

/** The command that the words lead to; undefined where they only lead to a group. */
function findCommand(words: readonly string[]): CommandNode | undefined {
  let found: CommandNode | undefined;
  for (const word of words) found = (found ? found.commands : COMMANDS)?.find(({ name }) => name === word) ?? found;
  return found?.load || found?.fallback ? found : undefined;
}

describe('README.md', () => {
  it('has the tables of commands and settings that the code makes (npm run docs)', async () => {
    expect(readme).toBe(await renewReadme(readme, path));
  });

  it('names the two commands of a fresh machine', () => {
    expect(readme).toContain('./install.sh --run');
    expect(readme).toContain('npm ci && npm test');
  });

  it.each(commandsIn(readme).map((words) => [words.join(' '), words] as const))(
    'names a command and options that there are: bsvc %s',
    async (_text, words) => {
      const command = findCommand(words);
      expect(command).toBeDefined();
      // A group that is called without one of its commands runs its fallback.
      const { fallback } = command as { fallback?: string };
      const isBare = fallback !== undefined && words.every((word) => word === command!.name || word.startsWith('-'));
      const named = words.filter((word) => !word.startsWith('-'));
      const { stdout } = await runCli([...named, ...(isBare ? [fallback] : []), '--help']);
      const options = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split('=')[0]!);
      expect(options.filter((option) => !stdout.includes(option))).toEqual([]);
    },
  );

  it('has a bsvc.yaml that makes its project, and changes nothing a second time', async () => {
    writeFileSync(join(home.dir, 'bsvc.yaml'), /```yaml\n(.*\nformat: bsvc[\s\S]*?)```/.exec(readme)![1]!);
    const apply = async () => {
      const { code, stdout, stderr } = await home.bsvc(['apply', '-f', 'bsvc.yaml', '--json']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return (JSON.parse(stdout) as { changes: unknown[] }).changes;
    };
    expect((await apply()).length).toBeGreaterThan(3);
    expect(await apply()).toEqual([]);
  });
});

describe('templates/bsvc.schema.json', () => {
  it('is the schema of bsvc.yaml that the code checks (npm run docs)', () => {
    const shipped = readFileSync(join(import.meta.dirname, '..', 'templates', 'bsvc.schema.json'), 'utf8');
    expect(JSON.parse(shipped)).toEqual(projectsFileSchema());
  });
});
