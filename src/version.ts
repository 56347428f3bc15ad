import { readFileSync } from 'node:fs';

/** The version in package.json, found from the compiled file as well as from the source. */
export const VERSION = readVersion();

function readVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return (JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string }).version;
    } catch {
      continue;
    }
  }
  throw new Error('package.json is missing from the installation');
}
