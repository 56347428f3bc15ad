import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { CODES } from '../src/engine/errors.js';
import { LINE_BUDGET, PAST_THE_WORLD } from './measure/line-budget.js';
import { countParts, ENGINE_BUILT, ENGINE_TESTS, GENERATED } from './measure/lines.js';

const ROOT = join(import.meta.dirname, '..');
const MAX_LINES = 800;
const MAX_FUNCTION_LINES = 120;
const MAX_FILES = 40;
/** From this share of a limit a warning is printed: what is full stops the next change, which is about neither. */
const WARNED = 0.9;

/** Parts whose folders are floors of their own. */
const ROOMED = /^(src\/features\/[^/]+|src\/platform|src\/http|src\/engine\/(storage|query)|cli)\/[^/]+$/;

interface SourceFile {
  path: string;
  lines: number;
  imports: string[];
  /** Names that it declares and exports. */
  exported: string[];
}

const EXPORTED = /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;

const EXPORTED_VALUE = /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class) (\w+)/gm;

const isTest = (path: string): boolean => path.startsWith(ENGINE_TESTS);
const files = [...listFiles('src'), ...listFiles('cli')].filter((path) => !isTest(path)).map(readSource);
const tests = [...listFiles('test'), ...listFiles(ENGINE_TESTS)];
const engine = files.map(({ path }) => path).filter((path) => path.startsWith('src/engine/'));

/** The card fixes the folders; of files there are the usual ones. What tests or commands leave is none of them. */
const TOP = [
  ...['bin', 'cli', 'src', 'templates', 'test'],
  ...['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'Dockerfile', 'compose.yaml', 'install.sh'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'build.mjs', 'vitest.config.ts'],
];

describe('the house keeps its walls', () => {
  it('has nothing at its top level but what belongs there', () => {
    const ignored = readFileSync(join(ROOT, '.gitignore'), 'utf8').trim().split('\n');
    const isIgnored = (name: string): boolean =>
      ignored.some((line) => (line.startsWith('*') ? name.endsWith(line.slice(1)) : `${name}/` === line));
    const known = (name: string): boolean => name.startsWith('.') || TOP.includes(name) || isIgnored(name);
    expect(readdirSync(ROOT).filter((name) => !known(name))).toEqual([]);
  });

  it('lets each part import only what the map allows', () => {
    const wrong = files.flatMap((file) =>
      file.imports.filter((target) => !isAllowed(file.path, target)).map((target) => `${file.path} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('lets the tests of the engine import nothing of ours but the engine', () => {
    const wrong = listFiles(ENGINE_TESTS)
      .map(readSource)
      .flatMap(({ path, imports }) =>
        imports.filter((target) => !target.startsWith('src/engine/')).map((target) => `${path} imports ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  it('lets features import only features below them', () => {
    const wrong = files.flatMap((file) =>
      file.imports.filter((target) => isUpward(file.path, target)).map((target) => `${file.path} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('keeps the rooms of each part free of cycles: who is above another never asks it for anything', () => {
    const rooms = new Map<string, Set<string>>();
    for (const { path, imports } of files) {
      const room = dirname(path);
      for (const target of imports.map(dirname)) {
        if (target === room || dirname(target) !== dirname(room) || !ROOMED.test(room)) continue;
        rooms.set(room, (rooms.get(room) ?? new Set()).add(target));
      }
    }
    expect(findCycle(new Map([...rooms].map(([room, targets]) => [room, [...targets]])))).toEqual([]);
  });

  it('has no folder that is found only by the alphabet', () => {
    const sizes = new Map<string, number>();
    for (const { path } of files) sizes.set(dirname(path), (sizes.get(dirname(path)) ?? 0) + 1);
    warn([...sizes].map(([folder, count]) => [`${folder}: ${count} of ${MAX_FILES} files`, count / MAX_FILES]));
    expect([...sizes].filter(([, count]) => count > MAX_FILES).map(([folder]) => folder)).toEqual([]);
  });

  it('keeps each part within its lines: a larger one raises its row and says why', () => {
    const parts = [...countParts()];
    expect(parts.filter(([name, { lines }]) => lines > (LINE_BUDGET[name] ?? 0)).map(([name]) => name)).toEqual([]);
    const names = parts.map(([name]) => name);
    expect(Object.keys(LINE_BUDGET).filter((name) => !names.includes(name))).toEqual([]);
  });

  it('lets tests of what users meet import the source by test/world alone', () => {
    const past = Object.keys(PAST_THE_WORLD).map((folder) => {
      const tests = listFiles(folder).map(readSource);
      const isPast = (target: string): boolean => /^(src(?!\/engine\/test\/)|cli)\//.test(target);
      return [folder, tests.filter(({ imports }) => imports.some(isPast)).length];
    });
    expect(Object.fromEntries(past)).toEqual(PAST_THE_WORLD);
  });

  it('has no import cycles, type-only imports included', () => {
    expect(findCycle(new Map(files.map((file) => [file.path, file.imports])))).toEqual([]);
  });

  it('has no names that explain nothing', () => {
    const vague = /(^|\/)(utils?|helpers?|common|lib|misc|types|interfaces)(\/|\.tsx?$)/;
    expect(files.map((file) => file.path).filter((path) => vague.test(path))).toEqual([]);
  });

  it('has no file that has grown into several', () => {
    warn(files.map(({ path, lines }) => [`${path}: ${lines} of ${MAX_LINES} lines`, lines / MAX_LINES]));
    expect(files.filter((file) => file.lines > MAX_LINES).map((file) => `${file.path}: ${file.lines} lines`)).toEqual(
      [],
    );
  });

  it('has no function that has grown into several', () => {
    const long = files.flatMap(({ path }) => listFunctions(path)).filter(({ lines }) => lines > MAX_FUNCTION_LINES);
    expect(long.map(({ name, lines }) => `${name}: ${lines} lines`)).toEqual([]);
  });

  it('gives every exported name one meaning', () => {
    const places = new Map<string, string[]>();
    for (const { path, exported } of files) {
      // The client is a package of its own, whose names are for its users; the console shares no name with the service.
      const part = partOf(path);
      const of = part === 'client' || part === 'console' ? `${part}: ` : '';
      for (const name of exported) places.set(of + name, [...(places.get(of + name) ?? []), path]);
    }
    expect([...places].filter(([, paths]) => paths.length > 1)).toEqual([]);
  });

  it('exports values that some other file, or a test, asks for', () => {
    const asking = [...files.map(({ path }) => path), ...tests].map((path) => {
      return { path, words: new Set(readFileSync(join(ROOT, path), 'utf8').match(/\w+/g)) };
    });
    const isForBrowsers = (path: string): boolean => /^src\/(client|console)\//.test(path);
    const unasked = files
      .filter(({ path }) => !isForBrowsers(path))
      .flatMap(({ path }) =>
        [...readFileSync(join(ROOT, path), 'utf8').matchAll(EXPORTED_VALUE)]
          .map(([, name]) => name!)
          .filter((name) => !asking.some((other) => other.path !== path && other.words.has(name)))
          .map((name) => `${path}: ${name}`),
      );
    expect(unasked).toEqual([]);
  });

  it('has a docstring on every exported function of the engine', () => {
    const silent = engine.flatMap((path) =>
      [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^(.*)\nexport (?:async )?function\*? (\w+)/gm)]
        .filter(([, above]) => !above!.endsWith('*/'))
        .map(([, , name]) => `${path}: ${name}`),
    );
    expect(silent).toEqual([]);
  });

  it('says above every double cast why the compiler cannot know', () => {
    const unexplained = files.flatMap(({ path }) => {
      const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
      return lines.flatMap((line, n) =>
        line.includes('as unknown as') && !/^\s*\/\//.test(lines[n - 1] ?? '') ? [`${path}:${n + 1}`] : [],
      );
    });
    expect(unexplained).toEqual([]);
  });

  it('casts to never nowhere: that overrules every check', () => {
    // Inside the client, documents have no type; at its borders they become those of the project that the caller names.
    const checked = files.filter(({ path }) => !path.startsWith('src/client/'));
    const casts = checked.filter(({ path }) => / as never\b/.test(readFileSync(join(ROOT, path), 'utf8')));
    expect(casts.map(({ path }) => path)).toEqual([]);
  });

  it('has no comment wider than the code, which Prettier keeps at 120 columns', () => {
    const wide = [...files.map(({ path }) => path), ...tests].flatMap((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .flatMap((line, n) => (isWideComment(line) ? [`${path}:${n + 1}`] : [])),
    );
    expect(wide).toEqual([]);
  });

  it('says in plain words what code is for: comments have the terms that a reader would search for', () => {
    const odd = files.flatMap(({ path }) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .flatMap((line, n) => (isOddComment(line) ? [`${path}:${n + 1}: ${line.trim()}`] : [])),
    );
    expect(odd).toEqual([]);
  });

  it('names the error codes of the engine that have a name', () => {
    const named = new Set<number>(Object.values(CODES));
    const numbers = engine.flatMap((path) =>
      [
        ...readFileSync(join(ROOT, path), 'utf8').matchAll(
          /(?:EngineError\(|refusal\(|\bpresent\(|\bcode: |: \[)\s*(\d+)\b/g,
        ),
      ]
        .filter(([, code]) => named.has(Number(code)))
        .map(([text]) => `${path}: ${text}`),
    );
    expect(numbers).toEqual([]);
  });

  it('reads the environment at one place only', () => {
    const readers = files
      .filter((file) => /process\.env\b/.test(readFileSync(join(ROOT, file.path), 'utf8')))
      .map((file) => file.path);
    expect(readers).toEqual(['cli/main.ts']);
  });

  it('writes documents at one place only, which asks the quota and has everybody told', () => {
    const WRITES =
      /\.(insert(One|Many|Together)!?|update(One|Many)|replaceOne|delete(One|Many)|findOneAnd\w+|bulkWrite|drop)\(/;
    const writers = files
      .filter(({ path }) => path.startsWith('src/features/'))
      .filter(({ path }) => {
        const text = readFileSync(join(ROOT, path), 'utf8');
        return /documentsName\(/.test(text) && WRITES.test(text);
      })
      .map(({ path }) => path);
    expect(writers.sort()).toEqual([
      // Writes its log, reads documents.
      'src/features/changes/stored-log.ts',
      // Whole collections, created and dropped.
      'src/features/collections/add-collection.ts',
      'src/features/collections/drop-collection.ts',
      'src/features/users/remove-records.job.ts',
    ]);
  });

  it('stores what it keeps for a project at one place only, which asks the quota', () => {
    const stores = ['session', 'code', 'attempt', 'identity', 'file'].map((name) => `${name}Store`).join('|');
    const inserts = new RegExp(`(${stores})\\(app\\)\\s*\\.insert`);
    const storing = files.filter(({ path }) => inserts.test(readFileSync(join(ROOT, path), 'utf8')));
    expect(storing.map(({ path }) => path)).toEqual([]);
  });

  it('orders what it shows to the end: documents of equal times come in the same order on every database', () => {
    // Unique where they are sorted, or work of which any comes first.
    const whole = /_id: |\.sort\(\{ (name|email|path|seq|leaseUntil|dueAt|checkAt|n): -?1 \}\)/;
    const short = files
      .filter(({ path }) => !/^src\/(engine|client|console)\//.test(path))
      .flatMap(({ path }) => {
        const sorts = readFileSync(join(ROOT, path), 'utf8').match(/\.sort\(\{[^)]*\}\)/g) ?? [];
        return sorts.filter((sort) => !whole.test(sort)).map((sort) => `${path}: ${sort}`);
      });
    expect(short).toEqual([]);
  });

  it('begins transactions of the data file at one place only: any other would not begin from the last commit', () => {
    const committers = files
      .filter((file) => /transaction(Sync|Async)|childTransaction/.test(readFileSync(join(ROOT, file.path), 'utf8')))
      .map((file) => file.path);
    // A copy is a new file that nobody else has open.
    expect(committers).toEqual(['src/engine/storage/copy-process.ts', 'src/engine/storage/file/last-commit.ts']);
  });
});

// Bottom up; features of one row may not import each other.
const FEATURE_ROWS = [
  ['projects', 'health', 'audit'],
  ['plans', 'collections'],
  ['access', 'changes'],
  ['quota'],
  ['webhooks', 'mail'],
  ['hooks'],
  ['documents'],
  ['users', 'feed'],
  ['files'],
  ['operators'],
  ['declaration', 'store-copies', 'erasure'],
  ['management'],
  ['backups', 'rule-tests'],
  ['series'],
  ['reference', 'console'],
  ['project-types'],
];

function partOf(path: string): string {
  const [top, second, third] = path.split('/');
  if (top === 'cli') return 'cli';
  if (second === 'features') return `feature:${third}`;
  return second!.replace(/\.ts$/, '');
}

function isAllowed(from: string, to: string): boolean {
  const source = partOf(from);
  const target = partOf(to);
  if (source === target) return true;
  // One queue for the process: two would each take turns of their own.
  if (['scheduler', 'fair-limiter'].includes(target)) return source !== 'client' && source !== 'engine';
  if (['scheduler', 'fair-limiter'].includes(source)) return target === 'errors';
  // The one reader of text from outside, settings included.
  if (target === 'text') return source !== 'client';
  if (source === 'text' || source === 'config') return target === 'errors';
  // A package of its own, for browsers.
  if (source === 'client' || target === 'client') return false;
  if (target === 'engine') return from === 'src/platform/database/database.ts' && to === 'src/engine/index.ts';
  if (source === 'engine') return false;
  if (source === 'cli') return true;
  if (target === 'cli') return false;
  // The forms of files, for the command line, the console and the service alike.
  if (target === 'exchange') return true;
  if (source === 'exchange') return false;
  const base = ['errors', 'config', 'package'];
  if (source === 'platform') return base.includes(target);
  if (source === 'http') return [...base, 'platform', 'app'].includes(target);
  if (source === 'migrations') return [...base, 'platform'].includes(target);
  if (source === 'app') return [...base, 'platform'].includes(target);
  if (source.startsWith('feature:')) {
    return [...base, 'platform', 'http', 'app'].includes(target) || target.startsWith('feature:');
  }
  return ['api', 'worker'].includes(source);
}

function isUpward(from: string, to: string): boolean {
  const source = rowOf(partOf(from));
  const target = rowOf(partOf(to));
  if (source === null || target === null || partOf(from) === partOf(to)) return false;
  return target >= source;
}

function rowOf(part: string): number | null {
  if (!part.startsWith('feature:')) return null;
  const row = FEATURE_ROWS.findIndex((names) => names.includes(part.slice('feature:'.length)));
  if (row < 0) throw new Error(`${part} is not on the list of features`);
  return row;
}

/** Of a line with an address nobody asks for less. */
function isWideComment(line: string): boolean {
  return line.length > 120 && /^\s*(\/\/|\/?\*)|[;,{}()] \/\/ /.test(line) && !/https?:\/\/|prettier-ignore/.test(line);
}

function isOddComment(line: string): boolean {
  return /^\s*(\/\/|\/?\*).*\b(tells|meanwhile|whoever|anew)\b|^\s*(\/\/|\/\*\*?) So (many|long)\b/i.test(line);
}

function findCycle(graph: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): string[] => {
    if (done.has(path)) return [];
    const at = trail.indexOf(path);
    if (at >= 0) return [...trail.slice(at), path];
    trail.push(path);
    for (const target of graph.get(path) ?? []) {
      const cycle = visit(target);
      if (cycle.length > 0) return cycle;
    }
    trail.pop();
    done.add(path);
    return [];
  };
  for (const path of graph.keys()) {
    const cycle = visit(path);
    if (cycle.length > 0) return cycle;
  }
  return [];
}

function listFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder)).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(join(ROOT, path)).isDirectory()) return listFiles(path);
    return /\.tsx?$/.test(path) && path !== GENERATED && !path.startsWith(ENGINE_BUILT) ? [path] : [];
  });
}

/** Named by the nearest declaration around it. */
function listFunctions(path: string): { name: string; lines: number }[] {
  const source = ts.createSourceFile(path, readFileSync(join(ROOT, path), 'utf8'), ts.ScriptTarget.Latest);
  const lineOf = (position: number): number => source.getLineAndCharacterOfPosition(position).line;
  const found: { name: string; lines: number }[] = [];
  const visit = (node: ts.Node, above: string): void => {
    const named = 'name' in node && (node.name as ts.Node | undefined);
    const name = named && ts.isIdentifier(named) ? named.text : above;
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      found.push({ name: `${path} ${name}`, lines: lineOf(node.end) - lineOf(node.getStart(source)) + 1 });
    }
    ts.forEachChild(node, (child) => visit(child, name));
  };
  visit(source, '');
  return found;
}

/** Prints what is near its limit, the fullest first. */
function warn(shares: [what: string, share: number][]): void {
  const full = shares.filter(([, share]) => share >= WARNED).sort(([, a], [, b]) => b - a);
  if (full.length > 0) console.warn(`nearly full:\n${full.map(([what]) => `  ${what}`).join('\n')}`);
}

function readSource(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) => match[1]!);
  const imports = specifiers.map((specifier) => {
    const target = relative(ROOT, normalize(join(ROOT, dirname(path), specifier))).replace(/\.js$/, '.ts');
    return existsSync(join(ROOT, `${target}x`)) ? `${target}x` : target;
  });
  const exported = [...new Set([...text.matchAll(EXPORTED)].map((match) => match[1]!))];
  return { path, lines: text.split('\n').length, imports, exported };
}
