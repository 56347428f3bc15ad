import { readFileSync } from 'node:fs';

/** A file of templates/docs, which lies beside `dist/` when built and beside `src/` when not. */
export function readTemplate(name: string): string {
  for (const root of ['../../../templates', '../../../../templates']) {
    try {
      return readFileSync(new URL(`${root}/docs/${name}`, import.meta.url), 'utf8');
    } catch {
      continue;
    }
  }
  throw new Error(`templates/docs/${name} is missing from the installation`);
}
