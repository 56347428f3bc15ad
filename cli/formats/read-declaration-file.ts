import { dirname, resolve } from 'node:path';
import { AppError, invalid } from '../../src/errors.js';
import { readTextFile } from '../../src/text.js';
import { readProjectsFile, type ProjectDeclaration } from '../../src/features/declaration/project-declaration.js';
import {
  readDeclarations,
  type CollectionDeclaration,
} from '../../src/features/collections/schema/collection-declaration.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import type { Context } from '../shell/context.js';
import { UsageError } from '../view/exit.js';
import { parseFieldSpec } from '../ask/field-spec.js';

const MAX_FILE_BYTES = 5 * 1024 * 1024;

/** YAML takes a text that begins with a quotation mark as ended by the next one. */
const QUOTES = 'A rule that begins with a quotation mark stands in single quotes as a whole.';

/** Reads JSON or YAML, by the file's name. 400 with the place of a mistake. */
export async function readStructuredFile(context: Context, file: string): Promise<unknown> {
  const text = await readTextFile(resolve(context.io.cwd, file), file);
  if (text.trim() === '') throw invalid('INVALID_FILE', `${file} is empty.`);
  if (text.length > MAX_FILE_BYTES) throw invalid('FILE_TOO_LARGE', `${file} is larger than 5 MB.`);
  try {
    if (!/\.ya?ml$/i.test(file)) return JSON.parse(text) as unknown;
    const { parseDocument } = await import('yaml');
    const document = parseDocument(text);
    // A tag that nothing reads is a warning: its value would be taken for a plain text.
    const [mistake] = [...document.errors, ...document.warnings];
    if (mistake) throw mistake;
    return document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch (error) {
    const why = (error as Error).message.split('\n')[0]!;
    const said = `${file} cannot be read: ${why.replace(/\.?:?$/, '.')}`;
    const advice = why.startsWith('Unexpected scalar') ? `${said} ${QUOTES}` : said;
    throw invalid('INVALID_FILE', advice, { cause: error });
  }
}

/** The line, from 1, at which a file of projects declares a collection of that name first; null when none does. */
export async function findDeclaration({ io }: Context, file: string, name: string): Promise<number | null> {
  const { isMap, isScalar, LineCounter, parseDocument, visit } = await import('yaml');
  const lines = new LineCounter();
  const text = await readTextFile(resolve(io.cwd, file), file);
  let found: number | null = null;
  visit(parseDocument(text, { lineCounter: lines }), {
    Map(_key, node, ancestors) {
      // A collection, or a project, in a list of them; those of one project have no `collections`.
      if (node.has('collections') || !ancestors.some((above) => isMap(above))) return undefined;
      const named = node.get('name', true);
      if (!isScalar(named) || named.value !== name || !named.range) return undefined;
      found = lines.linePos(named.range[0]).line;
      return visit.BREAK;
    },
  });
  return found;
}

/**
 * Collections as a file declares them; a field may be written as a field spec. Throws a UsageError that points into a
 * bad spec, with its `place`.
 */
export function readCollections(value: unknown, place: string): CollectionDeclaration[] {
  return readDeclarations(
    Array.isArray(value) ? value.map((each, at) => withParsedFields(each, `${place}.${at}.`)) : value,
  );
}

/** A file for one collection: a list of fields, or a declaration without its name. */
export function readCollectionFile(value: unknown, name: string, file: string): CollectionDeclaration {
  const declaration = Array.isArray(value) ? { fields: value as unknown[] } : value;
  if (typeof declaration !== 'object' || declaration === null) {
    throw invalid('INVALID_FILE', 'The schema file must hold a list of fields, or an object with "fields".');
  }
  return readDeclarations([withParsedFields({ ...declaration, name }, `${file}: `)])[0]!;
}

/** A projects file with its field specs parsed; a bad one is a UsageError with its place. */
export function withParsedCollections(value: unknown): unknown {
  const projects = (value as { projects?: unknown } | null)?.projects;
  if (!Array.isArray(projects)) return value;
  return {
    ...(value as object),
    projects: projects.map((project, at) => withParsedProject(project, `projects.${at}`)),
  };
}

/** A projects file, checked; errors name the file, the line and, inside one, the collection. */
export async function readProjects(context: Context, file: string): Promise<ReturnType<typeof readProjectsFile>> {
  const value = await readStructuredFile(context, file);
  try {
    const read = readProjectsFile(withParsedCollections(value));
    const folder = dirname(resolve(context.io.cwd, file));
    return { ...read, projects: read.projects.map((project) => withFiles(project, folder)) };
  } catch (error) {
    if (error instanceof UsageError) {
      const [place = ''] = error.message.split(':', 1);
      throw new UsageError(`${await locate(context, file, place)}: ${error.message}`, error.note);
    }
    if (!(error instanceof AppError)) throw error;
    const [problem] = error.details ?? [];
    const [, unknown] = /must not contain "(.*?)"/.exec(error.message) ?? [];
    const at = await locate(context, file, [problem?.field, unknown].filter((part) => part).join('.'));
    const message = `${at}: ${error.message}. "bsvc apply --schema" prints what the file may hold.`;
    throw invalid('INVALID_FILE', message, { cause: error });
  }
}

/** Files of own code by their whole paths: those in the declaration begin at its folder. */
function withFiles(project: ProjectDeclaration, folder: string): ProjectDeclaration {
  const { hooks, schedules, ownCode } = project;
  const wholeRun = (run: string): string => {
    const [path = '', ...name] = run.split('#');
    return [resolve(folder, path), ...name].join('#');
  };
  const withWholeRun = <T extends { run?: string }>(each: T): T =>
    each.run === undefined ? each : { ...each, run: wholeRun(each.run) };
  return {
    ...project,
    ...(hooks && { hooks: hooks.map(withWholeRun) }),
    ...(schedules && { schedules: schedules.map(withWholeRun) }),
    ...(ownCode?.folder !== undefined && { ownCode: { ...ownCode, folder: resolve(folder, ownCode.folder) } }),
  };
}

/** The file with the line of a place such as `projects.0.plan`, or of what is nearest around it. */
async function locate({ io }: Context, file: string, place: string): Promise<string> {
  const { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  let node: unknown = parseDocument(await readTextFile(resolve(io.cwd, file), file), { lineCounter: lines }).contents;
  let [offset, collection, above] = [0, '', ''];
  for (const step of place.split('.')) {
    const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === step) : undefined;
    const next: unknown = isSeq(node) ? node.items[Number(step)] : pair?.value;
    const start: unknown = pair?.key ?? next;
    if (!isNode(start) || !start.range) break;
    [offset] = start.range;
    const name: unknown = above === 'collections' && isMap(next) ? next.get('name') : undefined;
    if (typeof name === 'string') collection = `: collection ${name}`;
    [node, above] = [next, step];
  }
  return `${file}:${lines.linePos(offset).line}${collection}`;
}

function withParsedProject(project: unknown, place: string): unknown {
  if (typeof project !== 'object' || project === null) return project;
  const { collections, users } = project as { collections?: unknown; users?: unknown };
  return {
    ...project,
    ...(Array.isArray(collections) && {
      collections: collections.map((each, at) => withParsedFields(each, `${place}.collections.${at}.`)),
    }),
    ...(users !== undefined && { users: withParsedFields(users, `${place}.users.`) }),
  };
}

/** `prefix`: how the place of what stands in the declaration begins. */
function withParsedFields(declaration: unknown, prefix: string): unknown {
  const fields = (declaration as { fields?: unknown } | null)?.fields;
  if (!Array.isArray(fields)) return declaration;
  return {
    ...(declaration as object),
    fields: fields.map((field: unknown, at) =>
      typeof field === 'string' ? readSpec(field, `${prefix}fields.${at}`) : field,
    ),
  };
}

function readSpec(spec: string, place: string): Field {
  try {
    return parseFieldSpec(spec);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`${place}: ${error.message}`, error.note);
  }
}
