import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { CommandNode } from '../cli/shell/command.js';
import { COMMANDS } from '../cli/commands/index.js';
import { listRouteCommands } from '../cli/route-commands.js';
import { ROUTE_LISTS } from '../src/api.js';
import { listUnknownSettings } from '../cli/shell/settings.js';
import { loadConfig } from '../src/config/config.js';
import { SETTINGS } from '../src/config/settings.js';
import { POLLED } from '../src/client/filter-suffixes.js';
import { projectsFileSchema } from '../src/features/declaration/project-declaration.js';
import { FILTER_OPERATORS } from '../src/features/documents/query/filter-operators.js';
import { renderCommandsPage, renderSettingsPage } from './helpers/generated-docs.js';
import { renderRestGuide } from './helpers/generated-filters.js';
import { readGuides } from './helpers/guide-examples.js';
import { runCli } from './helpers/run-cli.js';
import { countSurface } from './measure/surface.js';

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
  return found?.load ? found : undefined;
}

describe('README.md', () => {
  it('is short enough to be read', () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(110);
  });

  it('names the two commands of a fresh machine', () => {
    expect(readme).toContain('./install.sh --run');
    expect(readme).toContain('npm ci && npm test');
  });

  it('leads to every guide', () => {
    for (const name of guides.keys()) expect(readme).toContain(`](templates/docs/${name})`);
  });

  it('lists what is not supported as Limits and Compare do', () => {
    const listed = (text: string): string => text.replace(/\s+/g, ' ').split('. ')[0]!.toLowerCase();
    const missing = listed(/Not supported: ([^[]+)/.exec(readme)![1]!);
    expect(listed(guides.get('limits.md')!.split('## Not supported')[1]!.trim())).toBe(missing);
    expect(listed(/Not supported: ([^[]+)/.exec(guides.get('compare.md')!)![1]!)).toBe(missing);
  });
});

/** Options of every command. */
const { stdout: globals } = await runCli(['--help']);

describe('the guides in templates/docs', () => {
  it('can be read in two hours: at most 21,300 words by hand', () => {
    expect(Object.fromEntries(countSurface())['words of guides by hand']).toBeLessThanOrEqual(21_300);
  });

  it('have the commands and settings that the code has (npm run docs)', async () => {
    expect(guides.get('commands.md')).toBe(await renderCommandsPage());
    expect(guides.get('settings.md')).toBe(await renderSettingsPage());
  });

  it.each(['audit', 'operator add'])('show that %s has a --project of its own', (command) => {
    expect(guides.get('commands.md')).toMatch(new RegExp(`^- .${command} .*--project <`, 'm'));
  });

  it('have the filters that the code has (npm run docs), as has the client', async () => {
    expect(guides.get('data.md')).toBe(await renderRestGuide());
    const client = readFileSync(join(import.meta.dirname, '../src/client/filter-suffixes.ts'), 'utf8');
    const typed = [...client.matchAll(/^ {2}(\w+): (.*);$/gm)].flatMap(([, takes, suffixes]) =>
      [...suffixes!.matchAll(/_\w+/g)].map(([suffix]) => `${suffix} ${takes!}`),
    );
    expect(typed.sort()).toEqual(FILTER_OPERATORS.map(({ suffix, takes }) => `${suffix} ${takes}`).sort());
    expect(FILTER_OPERATORS.flatMap(({ suffix, inStreams }) => (inStreams ? [] : [suffix]))).toEqual(['_regex']);
    expect(POLLED.test('name_regex=x')).toBe(true);
  });

  it('name only settings that there are', () => {
    // BSVC_PROJECT is the commands' own.
    const known = ['BSVC_PROJECT', ...Object.values(SETTINGS).flatMap(({ env }) => [env, `${env}_FILE`])];
    const named = new Set([...written.matchAll(/\bBSVC_[A-Z0-9_]+/g)].map(([name]) => name));
    const unknown = [...named].filter(
      (name) => !known.some((env) => env === name || (name.endsWith('_') && env.startsWith(name))),
    );
    expect(unknown).toEqual([]);
  });

  it('wait for a running server before they ask it about a project that they changed', () => {
    const hasty = [...guides].flatMap(([name, text]) =>
      [...text.matchAll(/```sh\n([\s\S]*?)```/g)]
        .map(([, block]) => /bsvc project update(?:(?!\nsleep )[^])*?\bcurl\b.*/.exec(block!)?.[0])
        .filter((lines) => lines !== undefined)
        .map((lines) => `${name}: ${lines}`),
    );
    expect(hasty).toEqual([]);
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
      const named = words.filter((word) => !word.startsWith('-'));
      const { stdout } = await runCli([...named, '--help']);
      const options = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split('=')[0]!);
      expect(options.filter((option) => !`${stdout}${globals}`.includes(option))).toEqual([]);
    },
  );
});

describe('compose.yaml and Dockerfile', () => {
  interface ComposeService {
    build?: string;
    image: string;
    command?: string | string[];
    environment?: Record<string, string | number>;
    depends_on?: Record<string, { condition: string }> | string[];
    healthcheck?: object;
  }
  const root = join(import.meta.dirname, '..');
  const { services, volumes } = parse(readFileSync(join(root, 'compose.yaml'), 'utf8'), { merge: true }) as {
    services: Record<string, ComposeService & { volumes?: string[] }>;
    volumes: Record<string, null>;
  };
  const own = Object.values(services).filter(({ build }) => build !== undefined);
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');

  it('set only settings that there are, in forms that they take', () => {
    expect(own.length).toBe(2);
    for (const { environment = {} } of own) {
      const values = Object.fromEntries(
        // As Compose fills them in: the default, else what .env would hold.
        Object.entries(environment).map(([name, value]) => [
          name,
          String(value).replace(
            /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g,
            (_all, _name, otherwise?: string) => otherwise ?? 'k'.repeat(44),
          ),
        ]),
      );
      expect(listUnknownSettings([{ source: 'compose.yaml', values }])).toEqual([]);
      expect(() => loadConfig([{ source: 'compose.yaml', values }])).not.toThrow();
    }
    const image = [...dockerfile.matchAll(/\b(BSVC_\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]);
    const values = Object.fromEntries(image) as Record<string, string>;
    expect(Object.keys(values)).toContain('BSVC_DATA_DIR');
    expect(listUnknownSettings([{ source: 'Dockerfile', values }])).toEqual([]);
    expect(() => loadConfig([{ source: 'Dockerfile', values }])).not.toThrow();
  });

  it('run commands that there are, with their options', async () => {
    for (const { command } of own) {
      const [name, ...words] = command as string[];
      const { stdout } = await runCli([name!, '--help']);
      expect(findCommand([name!])).toBeDefined();
      expect(words.filter((word) => !stdout.includes(word.split('=')[0]!))).toEqual([]);
    }
  });

  it('wait only for what is there and can be waited for, and keep data in volumes that are declared', () => {
    for (const { depends_on: waits = {}, volumes: mounts = [] } of Object.values(services)) {
      for (const [name, { condition }] of Array.isArray(waits) ? [] : Object.entries(waits)) {
        const { healthcheck, build } = services[name]!;
        // Ours has its check in the image.
        if (condition === 'service_healthy') expect(healthcheck ?? build).toBeDefined();
      }
      expect(mounts.map((mount) => mount.split(':')[0]!).filter((name) => !(name in volumes))).toEqual([]);
    }
    expect(dockerfile).toMatch(/^HEALTHCHECK .*\n.*\/api\/health\/live/m);
  });
});

/** Paths of the API with `{}` for what they name, and whether a text names one of them, or a folder of some. */
const apiPaths = ROUTE_LISTS.flatMap(({ routes }) => routes).map(({ path }) =>
  path.replace(/[:*]\w+/g, '{}').split('/'),
);
const isPath = (named: string): boolean => {
  const parts = named
    .replace(/(?<=\/)(\$\{?|:|\{)\w*\}?/g, '{}')
    .replace(/[/.]+$/, '')
    .split('/');
  return apiPaths.some((path) => parts.every((part, at) => path[at] === '{}' || path[at] === part));
};

describe('whatever a text names', () => {
  const ROOT = join(import.meta.dirname, '..');
  const isText = (path: string): boolean =>
    /\.(tsx?|md|html|txt)$/.test(path) && !/^src\/engine\/|api-routes/.test(path);
  const texts = ['README.md', ...['cli', 'src', 'templates'].flatMap(listFiles)]
    .filter(isText)
    .map((path) => [path, readFileSync(join(ROOT, path), 'utf8')] as const);
  const all = texts.map(([, text]) => text).join('\n');
  const unknown = (pattern: RegExp, isKnown: (name: string) => boolean): string[] =>
    texts.flatMap(([path, text]) =>
      [...text.matchAll(pattern)]
        .map(([, name]) => name!)
        .filter((name) => !isKnown(name))
        .map((name) => `${path}: ${name}`),
    );

  it('in code, guides, mails and examples: settings that there are', () => {
    // The commands' own, and that of examples of requests.
    const known = ['BSVC_PROJECT', 'BSVC_URL', ...Object.values(SETTINGS).flatMap(({ env }) => [env, `${env}_FILE`])];
    const isKnown = (name: string): boolean =>
      known.some((env) => env === name || (name.endsWith('_') && env.startsWith(name)));
    expect(unknown(/(?<!\w)(BSVC_[A-Z0-9_]+)/g, isKnown)).toEqual([]);
  });

  it('in guides: codes that some code answers or an example of theirs defines', () => {
    const codes = new Set([...all.matchAll(/'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)'/g)].map(([, code]) => code));
    const isEnv = (name: string): boolean =>
      Object.values(SETTINGS).some(({ env }) => env === name) || /^(BSVC|XDG)_/.test(name);
    const inGuides = unknown(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`/g, (name) => codes.has(name) || isEnv(name));
    expect(inGuides.filter((line) => /^(README|templates|src\/decisions)/.test(line))).toEqual([]);
  });

  /** Of GitHub Enterprise; a name that a file is given. */
  const NOT_OURS = new Set(['/api/v3', '/api/${name}']);

  it('in guides and messages: paths of the API that there are', () => {
    expect(
      unknown(/(?<![\w.:]|localhost:\d+)(\/api\/[\w/{}$:.-]+)/g, (name) => isPath(name) || NOT_OURS.has(name)),
    ).toEqual([]);
  });

  it('in messages and guides: commands that there are', () => {
    const lead = (text: string): boolean => {
      const words = text.split(/\s+/);
      let nodes: readonly CommandNode[] | undefined = COMMANDS;
      for (const word of words) {
        const found: CommandNode | undefined = nodes?.find(({ name }) => name === word);
        if (!found) return nodes !== COMMANDS && (nodes === undefined || !/^[a-z-]+$/.test(word));
        nodes = found.commands;
      }
      return true;
    };
    expect(unknown(/["`“>]bsvc (?!help |is |client)([a-z][a-z-]*(?: [a-z][a-z-]*)*)/g, lead)).toEqual([]);
  });
});

function listFiles(folder: string): string[] {
  return readdirSync(join(import.meta.dirname, '..', folder), { recursive: true, encoding: 'utf8' }).map(
    (path) => `${folder}/${path}`,
  );
}

/** By method and path, as the build puts them into the console. */
const ROUTE_COMMANDS = listRouteCommands();

describe('the texts of the console', () => {
  const sources = readdirSync(join(import.meta.dirname, '../src/console'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && path !== 'api-routes.ts')
    .map((path) => [path, readFileSync(join(import.meta.dirname, '../src/console', path), 'utf8')] as const);
  const paths = new Set(ROUTE_LISTS.flatMap(({ routes }) => routes).map(({ path }) => path.replace(/[:*]\w+/g, '{}')));

  it('name only paths that there are', () => {
    const named = sources.flatMap(([file, text]) =>
      [...text.matchAll(/\/api\/[\w/{}$():.-]*/g)].map(
        ([path]) => `${file}: ${path.replace(/\$?\{[^}]*\}*/g, '{}').replace(/[/.]+$/, '')}`,
      ),
    );
    const isThere = (path: string): boolean =>
      [...paths].some((known) => known === path || known.startsWith(`${path}/`) || path.startsWith('/api/data/'));
    expect(named.filter((line) => !isThere(line.split(': ')[1]!))).toEqual([]);
  });

  const named = sources.flatMap(([, text]) =>
    [...text.matchAll(/[`'>]bsvc ([a-z][^`'<\n]*)/g)].map(([, words]) => words!),
  );

  it.each(named)('name a command and options that there are: bsvc %s', async (text) => {
    const words = text.split(/\s+/).filter((word) => /^[a-z][a-z-]*$/.test(word));
    const command = findCommand(words);
    expect(command, text).toBeDefined();
    const { stdout } = await runCli([...words, '--help']);
    const options = [...text.matchAll(/(?<=\s)--[a-z][a-z-]*/g)].map(([option]) => option);
    expect(options.filter((option) => !new RegExp(`${option}\\b`).test(stdout))).toEqual([]);
  });

  it('have the command of every route that names one', () => {
    const wanted = ROUTE_LISTS.flatMap(({ routes }) => routes).flatMap(({ command }) => command ?? []);
    expect(wanted.filter((command) => !Object.values(ROUTE_COMMANDS).includes(command))).toEqual([]);
  });

  it.each(Object.entries(ROUTE_COMMANDS))(
    'show a command for %s that takes what its path names: bsvc %s',
    async (route, words) => {
      const { stdout } = await runCli([...words.split(' '), '--help']);
      const [, usage = ''] = /^Usage: (.*)/.exec(stdout) ?? [];
      const [project, ...others] = [...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
      const isOfProject = project === 'projectId';
      const isNamedFirst = words.startsWith('project ');
      const given = (isOfProject && !isNamedFirst ? [] : [project].flat().filter((name) => name !== undefined)).concat(
        others,
      );
      expect([...usage.matchAll(/[<[](?!options)[\w-]+/g)].length, usage).toBeGreaterThanOrEqual(given.length);
      if (isOfProject && !isNamedFirst) expect(stdout).toContain('--project <');
    },
  );
});

describe('templates/bsvc.schema.json', () => {
  it('is the schema of bsvc.yaml that the code checks (npm run docs)', () => {
    const shipped = readFileSync(join(import.meta.dirname, '..', 'templates', 'bsvc.schema.json'), 'utf8');
    expect(JSON.parse(shipped)).toEqual(projectsFileSchema());
  });
});
