import { AppError, invalid } from '../../../src/errors.js';
import { readTextFile } from '../../../src/text.js';
import type { Caller } from '../../../src/features/access/caller.js';
import { FEED_PARAMETERS } from '../../../src/features/feed/feed-query.js';
import { watchChanges } from '../../../src/features/feed/watch-changes.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { playedOption, readAs } from '../../ask/choose-user.js';
import { filterOption } from '../../ask/filter-option.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { replaceFile } from '../../formats/replace-file.js';
import { resolveOutput } from '../../shell/resolve-output.js';

export default defineCommand({
  details:
    'One JSON object per line: {"type":"upsert","id",…,"document"}, {"type":"gone",…}, or {"type":"reset"} when what is known must be forgotten because the log does not reach back so far. First what is there, then what becomes of it, until Ctrl-C. With --cursor-file it goes on where it was when it is run again.',
  examples: [
    'bsvc data watch posts --project shop --filter status=live',
    'bsvc data watch posts --project shop --since now',
    'bsvc data watch posts --project shop --once --cursor-file posts.cursor >> posts.ndjson',
  ],
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    as: playedOption,
    filters: filterOption(['fields', 'since'], FEED_PARAMETERS),
    fields: option('--fields <names>', 'only these fields, separated by commas'),
    since: option('--since <cursor>', 'where to begin: a cursor, or now (default: with what is there)'),
    once: flag('--once', 'end when everything has been told'),
    cursorFile: option('--cursor-file <file>', 'where to note how far it has come, and to go on from'),
  },
  async run(context, input) {
    const cursorFile =
      input.cursorFile === undefined ? undefined : await resolveOutput(context, input.cursorFile, '--cursor-file');
    const query = new URLSearchParams(input.filters);
    if (input.fields !== undefined) query.set('fields', input.fields);
    const noted = cursorFile === undefined ? null : await readCursor(cursorFile);
    if (noted !== null && input.since !== undefined) {
      throw new UsageError(`${input.cursorFile} says where to go on: leave --since out, or remove the file.`);
    }
    const { app, project, collection } = await chooseCollection(context, input);
    const tell = async (caller: Caller): Promise<void> => {
      const pages = watchChanges(app, caller, {
        collectionName: collection.name,
        query: query.toString(),
        since: noted ?? input.since ?? null,
        signal: context.stop,
      });
      let last = noted;
      for await (const { lines, cursor, isCaughtUp, isReset } of noted === null
        ? pages
        : from(input.cursorFile, pages)) {
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
  },
});

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
