import { AppError, invalid } from '../../../src/errors.js';
import { readTextFile } from '../../../src/text.js';
import type { Caller } from '../../../src/features/access/caller.js';
import { FEED_PARAMETERS } from '../../../src/features/feed/feed-query.js';
import { watchChanges } from '../../../src/features/feed/watch-changes.js';
import type { App } from '../../../src/app.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import type { Project } from '../../../src/features/projects/project.js';
import { readAs } from '../../ask/choose-user.js';
import type { Context } from '../../shell/context.js';
import { UsageError } from '../../view/exit.js';
import { replaceFile } from '../../formats/replace-file.js';
import { resolveOutput } from '../../shell/resolve-output.js';

interface Watched {
  filters: [name: string, value: string][];
  fields: string | undefined;
  as: string | undefined;
  since: string | undefined;
  once: boolean;
  cursorFile: string | undefined;
}

/** Follows the changes of a collection, one JSON object per line, until it is stopped. */
export async function watchDocuments(
  context: Context,
  { app, project, collection }: { app: App; project: Project; collection: Collection },
  input: Watched,
): Promise<void> {
  const parameter = input.filters.find(([name]) => FEED_PARAMETERS.has(name));
  if (parameter) throw new UsageError(`--filter ${parameter[0]}=… is no condition of changes.`);
  const cursorFile =
    input.cursorFile === undefined ? undefined : await resolveOutput(context, input.cursorFile, '--cursor-file');
  const query = new URLSearchParams(input.filters);
  if (input.fields !== undefined) query.set('fields', input.fields);
  const noted = cursorFile === undefined ? null : await readCursor(cursorFile);
  if (noted !== null && input.since !== undefined) {
    throw new UsageError(`${input.cursorFile} says where to go on: leave --since out, or remove the file.`);
  }
  const tell = async (caller: Caller): Promise<void> => {
    const pages = watchChanges(app, caller, {
      collectionName: collection.name,
      query: query.toString(),
      since: noted ?? input.since ?? null,
      signal: context.stop,
    });
    let last = noted;
    for await (const { lines, cursor, isCaughtUp, isReset } of noted === null ? pages : from(input.cursorFile, pages)) {
      if (isReset) {
        await context.out.write('{"type":"reset"}\n');
      } else {
        if (lines.length > 0) await context.out.write(`${lines.join('\n')}\n`);
        // Not before it is written: a command that is stopped in between prints it once more.
        if (cursorFile !== undefined && cursor !== last) await replaceFile(cursorFile, `${cursor}\n`);
        last = cursor;
        if (isCaughtUp && input.once) return;
      }
    }
  };
  await readAs(app, { project, collection: collection.name, as: input.as }, tell);
}

/** The pages by the cursor of a file; 400 INVALID_CURSOR names the file. */
async function* from<T>(file: string | undefined, pages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* pages;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_CURSOR') throw error;
    const message = `${file} holds no cursor of this collection and filter: remove it to begin anew, or name another`;
    throw invalid('INVALID_CURSOR', message, { cause: error });
  }
}

async function readCursor(path: string): Promise<string | null> {
  try {
    return (await readTextFile(path)).trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
}
