import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '..', '..');

/** Programs that differ by what they may use: a page has a document, a script of Node has none. */
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.dom.asynciterable.d.ts'],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  types: [],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: false,
  noEmit: true,
  skipDefaultLibCheck: true,
};

/**
 * Compiles texts by path, relative to the repository, as one strict program that may import its files. Its complaints,
 * each as `file:line TS1234 message`.
 */
export function compile(texts: Readonly<Record<string, string>>, options: ts.CompilerOptions = {}): string[] {
  return compileMeasured(texts, options).complaints;
}

/** As compile, with the work it was: types that the compiler had to make of others, the same on every machine. */
export function compileMeasured(
  texts: Readonly<Record<string, string>>,
  options: ts.CompilerOptions = {},
): { complaints: string[]; instantiations: number } {
  const files = new Map(Object.entries(texts).map(([path, text]) => [join(ROOT, path), text]));
  const all = { ...OPTIONS, ...options };
  const host = ts.createCompilerHost(all);
  const { fileExists, getSourceFile, readFile, directoryExists } = host;
  const folders = new Set([...files.keys()].flatMap((path) => parents(path)));
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.directoryExists = (path) => folders.has(path) || directoryExists!(path);
  host.readFile = (path) => files.get(path) ?? readFile(path);
  host.getSourceFile = (path, language, ...rest) => {
    const text = files.get(path);
    return text === undefined ? getSourceFile(path, language, ...rest) : ts.createSourceFile(path, text, language);
  };
  const program = ts.createProgram([...files.keys()], all, host);
  const complaints = ts.getPreEmitDiagnostics(program).map((diagnostic) => {
    const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ');
    const place = diagnostic.file
      ? `${diagnostic.file.fileName.replace(`${ROOT}/`, '')}:${
          diagnostic.file.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line + 1
        }`
      : '';
    return `${place} TS${diagnostic.code} ${message}`;
  });
  return { complaints, instantiations: program.getInstantiationCount() };
}

function parents(path: string): string[] {
  const parts = path.split('/');
  return parts.map((_, at) => parts.slice(0, at).join('/')).filter((folder) => folder !== '');
}
