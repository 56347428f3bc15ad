import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { watchChanges } from '../../../src/features/feed/watch-changes.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { readCondition } from '../../ask/read-condition.js';
import { defineCommand, flag, list, value } from '../../shell/command.js';
import { UsageError } from '../../shell/exit.js';

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
    filters: list('--filter <field=value>', 'condition (repeatable, all must hold)', readCondition),
    fields: value('--fields <names>', 'only these fields, separated by commas'),
    since: value('--since <cursor>', 'where to begin: a cursor, or now (default: with what is there)'),
    once: flag('--once', 'end when everything has been told'),
    cursorFile: value('--cursor-file <file>', 'where to note how far it has come, and to go on from'),
  },
  async run(context, input) {
    const { cursorFile } = input;
    const query = new URLSearchParams(input.filters);
    if (input.fields !== undefined) query.set('fields', input.fields);
    const noted = cursorFile === undefined ? null : await readCursor(cursorFile);
    if (noted !== null && input.since !== undefined) {
      throw new UsageError(`${cursorFile} says where to go on: leave --since out, or remove the file.`);
    }
    const { app, project, collection } = await chooseCollection(context, input);
    const pages = watchChanges(app, project, {
      collectionName: collection.name,
      query: query.toString(),
      since: noted ?? input.since ?? null,
      signal: context.stop,
    });
    let last = noted;
    for await (const { lines, cursor, isCaughtUp, isReset } of pages) {
      if (isReset) {
        await context.out.write('{"type":"reset"}\n');
      } else {
        if (lines.length > 0) await context.out.write(`${lines.join('\n')}\n`);
        // Not before it is written: whoever is stopped in between is told once more.
        if (cursorFile !== undefined && cursor !== last) await noteCursor(cursorFile, cursor);
        last = cursor;
        if (isCaughtUp && input.once) return;
      }
    }
  },
});

async function readCursor(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
}

async function noteCursor(path: string, cursor: string): Promise<void> {
  const draft = `${path}.${process.pid}.part`;
  try {
    await writeFile(draft, `${cursor}\n`, { mode: 0o600 });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
