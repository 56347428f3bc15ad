import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENGINE_BUILT, ENGINE_TESTS } from './measure/lines.js';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const { dependencies, devDependencies, scripts } = JSON.parse(read('package.json')) as Record<
  'dependencies' | 'devDependencies' | 'scripts',
  Record<string, string>
>;
const { packages } = JSON.parse(read('package-lock.json')) as {
  packages: Record<string, Locked>;
};

interface Locked {
  resolved?: string;
  integrity?: string;
  hasInstallScript?: boolean;
  dev?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** Whether a package finds another one, in its own folder of packages or in one above. */
function findInstalled(from: string, name: string): boolean {
  if (packages[`${from && `${from}/`}node_modules/${name}`]) return true;
  return from !== '' && findInstalled(from.split('/node_modules/').slice(0, -1).join('/node_modules/'), name);
}

/** The project and its engine, which is a package of its own. */
const OURS: ReadonlySet<string> = new Set(['', 'src/engine', 'node_modules/@bsvc/engine']);
/** The packages that the service hands out. */
const BUILT_HERE = '@bsvc';

/** What is bundled for browsers when it is built, by tools that are not shipped. */
const isBundled = (path: string): boolean => /^src\/(console\/|client\/|packaging\/|engine\/build\.mjs)/.test(path);
const isOfTests = (path: string): boolean => path.startsWith(ENGINE_TESTS) || path.startsWith(ENGINE_BUILT);
const sources = ['src', 'cli', 'bin'].flatMap(listFiles).filter((path) => !isOfTests(path));
const shipped = importsOf(sources.filter((path) => !isBundled(path)));
/** What `npm run clients` runs in a folder of its own, into which it fetches what they import. */
const isOfClients = (path: string): boolean => /^test\/clients\/.*\.mjs$/.test(path);
const tested = importsOf([
  ...sources.filter(isBundled),
  ...['test', ENGINE_TESTS].flatMap(listFiles).filter((path) => !isOfClients(path)),
  ...['vitest.config.ts', 'build.mjs'],
]);

describe('package.json', () => {
  it('lists everything that the service imports, and nothing else', () => {
    // Reader threads that run from the source, as in tests, load it; the built service never does.
    const fromSource = ['tsx'];
    expect(Object.keys(dependencies).sort()).toEqual([...shipped].filter((name) => !fromSource.includes(name)).sort());
  });

  it('lists what only tests and tools need apart', () => {
    const missing = [...tested].filter(
      (name) => !dependencies[name] && !devDependencies[name] && !name.startsWith(BUILT_HERE),
    );
    const unused = Object.keys(devDependencies).filter(
      (name) => !tested.has(name) && !isTypesOfListed(name) && !isTool(name),
    );
    expect({ missing, unused }).toEqual({ missing: [], unused: [] });
  });

  it('has what the engine’s own lists, in the same versions: the engine imports that, and nothing else', () => {
    const engine = JSON.parse(read('src/engine/package.json')) as { dependencies: Record<string, string> };
    const imported = importsOf(sources.filter((path) => path.startsWith('src/engine/') && !isBundled(path)));
    imported.delete('tsx');
    expect(engine.dependencies).toEqual(Object.fromEntries([...imported].map((name) => [name, dependencies[name]])));
  });

  it('names exact versions', () => {
    const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([, version]) => !/^(npm:typescript@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
    );
    expect(loose).toEqual([]);
  });
});

describe('package-lock.json', () => {
  it('has every package that another asks for, those of other systems too: npm ci refuses it otherwise', () => {
    const missing = Object.entries(packages).flatMap(([path, { dependencies: own = {}, optionalDependencies = {} }]) =>
      Object.keys({ ...own, ...optionalDependencies })
        .filter((name) => !findInstalled(path, name))
        .map((name) => `${path || 'the project'} -> ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('takes every package from the registry, with its checksum', () => {
    const odd = Object.entries(packages).filter(
      // Without an address it is the registry's.
      ([path, { resolved, integrity }]) =>
        !OURS.has(path) && (resolved !== undefined || !integrity?.startsWith('sha512-')),
    );
    expect(odd.map(([path]) => path)).toEqual([]);
  });

  // Each of these ships binaries for the usual platforms and compiles only elsewhere: `npm ci --ignore-scripts` is
  // enough.
  it('has no install scripts beyond those that can be left out', () => {
    const withScripts = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript);
    expect(withScripts.map(([path, { dev }]) => [path.replace('node_modules/', ''), dev === true])).toEqual([
      ['bcrypt', false],
      ['esbuild', true],
      ['lmdb', false],
      ['msgpackr-extract', false],
      ['protobufjs', true],
    ]);
  });
});

function isTypesOfListed(name: string): boolean {
  if (name === '@types/node') return true;
  const typed = /^@types\/(.+)$/.exec(name)?.[1]?.replace(/^(.+)__(.+)$/, '@$1/$2');
  return typed !== undefined && (typed in dependencies || typed in devDependencies);
}

/** Called by name in the scripts of package.json. */
function isTool(name: string): boolean {
  // What another one starts by itself: oxlint for the rules that need types, Stryker for the tests.
  const starters: Record<string, string> = {
    'oxlint-tsgolint': 'oxlint',
    '@stryker-mutator/vitest-runner': '@stryker-mutator/core',
  };
  if (Object.hasOwn(starters, name)) return starters[name]! in devDependencies;
  // The recipe of a guide, which a test runs as it is pasted, imports it.
  if (name === '@opentelemetry/sdk-node') return read('templates/docs/monitoring.md').includes(`from '${name}'`);
  // The front end that a new project may begin with is built by it, as its own package.json has it.
  if (name === 'vite') return read('templates/init/react/package.json').includes(`"${name}"`);
  return Object.values(scripts).some((script) => script.split(/[ /]/).includes(name));
}

/** Names of the packages that these files load, whether by `import`, `import()`, `require()` or by their path. */
function importsOf(paths: string[]): Set<string> {
  const forms =
    /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\brequire\(\s*|createRequire\(import\.meta\.url\)(?:\.resolve)?\(\s*|'node_modules',\s*)'([@a-z][\w@./:-]*)'/g;
  const names = paths.flatMap((path) => [...read(path).matchAll(forms)].map((match) => packageName(match[1]!)));
  // Our own client, as a project that has installed it loads it.
  const isForeign = (name: string): boolean =>
    !name.startsWith('node:') && !builtinModules.includes(name) && !name.startsWith('@bsvc');
  return new Set(names.filter(isForeign));
}

function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function listFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1));
}
