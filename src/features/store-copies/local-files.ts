import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../../config/config.js';

/** The folder of the uploads that the service keeps itself. */
export const localFilesDir = ({ dataDir }: Pick<Config, 'dataDir'>): string => resolve(dataDir, 'files');

/** The paths of all files below a directory; none when there is no such directory. */
export async function* listFiles(dir: string): AsyncGenerator<string> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* listFiles(path);
    else if (entry.isFile()) yield path;
  }
}
