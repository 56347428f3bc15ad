import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CommandNode } from '../cli/shell/command.js';
import { COMMANDS } from '../cli/commands/index.js';
import { SETTINGS } from '../src/config.js';
import { projectsFileSchema } from '../src/features/declaration/project-declaration.js';
import { renderCommandsPage, renderSettingsPage } from './helpers/generated-docs.js';
import { readGuides } from './helpers/guide-examples.js';
import { runCli } from './helpers/run-cli.js';

const readme = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8');
const guides = readGuides();
/** Everything that a reader may paste from. */
const written = [readme, ...guides.values()].join('\n');

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
  it('is short enough to be read', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(200);
  });

  it('names the two commands of a fresh machine', () => {
    expect(readme).toContain('./install.sh --run');
    expect(readme).toContain('npm ci && npm test');
  });

  it('leads to every guide', () => {
    for (const name of guides.keys()) expect(readme).toContain(`](templates/docs/${name})`);
  });
});

describe('the guides in templates/docs', () => {
  it('have the commands and settings that the code has (npm run docs)', async () => {
    expect(guides.get('commands.md')).toBe(await renderCommandsPage());
    expect(guides.get('settings.md')).toBe(await renderSettingsPage());
  });

  it('name only settings that there are', () => {
    // BSVC_PROJECT is the commands' own.
    const known = ['BSVC_PROJECT', ...Object.values(SETTINGS).flatMap(({ env }) => [env, `${env}_FILE`])];
    const named = new Set([...written.matchAll(/\bBSVC_[A-Z0-9_]+/g)].map(([name]) => name));
    // BSVC_S3_* stands for all that begin so.
    const unknown = [...named].filter(
      (name) => !known.some((env) => env === name || (name.endsWith('_') && env.startsWith(name))),
    );
    expect(unknown).toEqual([]);
  });

  it('link only to what is there', () => {
    const broken = [...guides].flatMap(([name, text]) =>
      [...text.matchAll(/\]\(([^)]+)\)/g)]
        .map(([, target]) => target!)
        .filter((target) => !target.startsWith('https://') && !guides.has(target))
        .map((target) => `${name}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it.each(commandsIn(written).map((words) => [words.join(' '), words] as const))(
    'name a command and options that there are: bsvc %s',
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
});

describe('templates/bsvc.schema.json', () => {
  it('is the schema of bsvc.yaml that the code checks (npm run docs)', () => {
    const shipped = readFileSync(join(import.meta.dirname, '..', 'templates', 'bsvc.schema.json'), 'utf8');
    expect(JSON.parse(shipped)).toEqual(projectsFileSchema());
  });
});
