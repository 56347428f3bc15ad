import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the installation, found from the built files as well as from the sources. */
export const PACKAGE_ROOT = findRoot(dirname(fileURLToPath(import.meta.url)));

/** The version in package.json. */
export const VERSION = (JSON.parse(readPackageFile('package.json')) as { version: string }).version;

/** A text that comes with the installation, by its path in it; throws when it is not there. */
export function readPackageFile(...path: string[]): string {
  return readFileSync(join(PACKAGE_ROOT, ...path), 'utf8');
}

function findRoot(from: string): string {
  return existsSync(join(from, 'package.json')) ? from : findRoot(dirname(from));
}
