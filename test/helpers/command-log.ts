import { ENGINE_COMMANDS } from '../../src/engine/commands/index.js';
import { pageRead } from '../../src/engine/commands/read/page-read.js';
import { pointRead } from '../../src/engine/commands/read/point-read.js';
import { CommitQueue } from '../../src/engine/storage/commit-queue.js';

export interface SeenCommand {
  name: string;
  body: Record<string, unknown>;
}

export interface CommandLog {
  seen: SeenCommand[];
  named(...names: string[]): SeenCommand[];
  stop(): void;
}

/** Notes every command that engines of this process run, by any transport, until stopped. */
export function listenToCommands(): CommandLog {
  const seen: SeenCommand[] = [];
  const originals = [...new Set(Object.values(ENGINE_COMMANDS))].map((command) => ({ command, run: command.run }));
  for (const { command, run } of originals) {
    command.run = (call, body) => {
      seen.push({ name: Object.keys(body)[0]!, body });
      return run.call(command, call, body);
    };
  }
  const { run: readPoint } = pointRead;
  pointRead.run = (call, find, filter) => {
    const found = readPoint(call, find, filter);
    if (found !== undefined) seen.push({ name: 'find', body: { find, filter, limit: 1, singleBatch: true } });
    return found;
  };
  const { run: readPage } = pageRead;
  pageRead.run = (call, name, asked) => {
    const page = readPage(call, name, asked);
    const { filter, sort, skip, limit } = asked;
    if (page !== undefined) seen.push({ name: 'find', body: { find: name, filter, sort, skip, limit } });
    return page;
  };
  return {
    seen,
    named: (...names) => seen.filter(({ name }) => names.includes(name)),
    stop() {
      for (const { command, run } of originals) command.run = run;
      pointRead.run = readPoint;
      pageRead.run = readPage;
    },
  };
}

/** Counts the write transactions of engines of this process until stopped, those that find nothing to change too. */
export function countCommits(): { stop(): number } {
  const queue = CommitQueue.prototype as unknown as { transaction: (work: () => void) => number | null };
  const { transaction } = queue;
  let count = 0;
  queue.transaction = function (this: CommitQueue, work) {
    count++;
    return transaction.call(this, work);
  };
  return {
    stop() {
      queue.transaction = transaction;
      return count;
    },
  };
}
