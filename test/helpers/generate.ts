import { existsSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

// `npm run generate`: writes the types of the console's requests, before types and lint look at them. They are no part
// of the repository, and nothing of them is loaded: neither the build nor a test needs them.
const ROOT = join(import.meta.dirname, '..', '..');
const PATH = join(ROOT, 'src', 'console', 'api-routes.ts');
/** What they are made from. */
const SOURCES = ['src/api.ts', 'src/features', 'src/http', 'src/platform/schema', 'test/helpers/generated-routes.ts'];

const newest = Math.max(...SOURCES.flatMap((path) => listFiles(join(ROOT, path))).map(changedAt));
if (!existsSync(PATH) || changedAt(PATH) <= newest) {
  const { renderConsoleRoutes } = await import('./generated-routes.js');
  // As a whole: types and lint may begin at the same time, and either reads it.
  const draft = `${PATH}.${process.pid}`;
  writeFileSync(draft, await renderConsoleRoutes());
  renameSync(draft, PATH);
}

function listFiles(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name));
}

function changedAt(path: string): number {
  return statSync(path).mtimeMs;
}
