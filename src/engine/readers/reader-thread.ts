import { readlinkSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { Core } from '../commands/command.js';
import { Cursors } from '../commands/read/cursors.js';
import { Transactions } from '../commands/transactions.js';
import { runCommand } from '../commands/index.js';
import { openStorage } from '../storage/storage.js';
import {
  packError,
  packReply,
  READY,
  type ReaderAbort,
  type ReaderAnswer,
  type ReaderCommand,
  type ReaderNotice,
  type ReaderOptions,
  transfersOf,
  unpackBody,
} from './messages.js';

/*
 * The program of a reader thread: it runs commands of the engine over the same data file, for reading only. It may be
 * ended at any moment, in the middle of a command.
 */

/**
 * Larger than any stored value: lmdb then copies all of them, and never hands out one buffer over the mapped file that
 * several threads would share.
 */
const LARGEST_VALUE_BYTES = 18 * 1024 * 1024;

standBack();

const port = parentPort!;
const { dataDir, durability } = workerData as ReaderOptions;
const storage = openStorage(dataDir, durability);
// A writer that is ended could leave half a transaction behind.
void storage.queue.close();
// A method of lmdb that its types leave out.
(storage.environment.store as unknown as { _allocateGetBuffer(half: number): void })._allocateGetBuffer(
  LARGEST_VALUE_BYTES / 2,
);
storage.onLongRead = (longRead) => {
  const notice: ReaderNotice = { longRead };
  port.postMessage(notice);
};
const core: Core = {
  storage,
  cursors: new Cursors(),
  transactions: new Transactions(),
  startedAt: Date.now(),
  commandCounts: new Map(),
  readers: null,
};
const running = new Map<number, AbortController>();

/**
 * On Linux a thread has a priority of its own: where processors are few, the main thread's short requests come before
 * long reads. Elsewhere all have the same.
 */
function standBack(): void {
  try {
    const threadId = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(threadId, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // No Linux, or not allowed.
  }
}

async function answer({ id, db, body }: ReaderCommand): Promise<ReaderAnswer> {
  const gone = new AbortController();
  running.set(id, gone);
  try {
    return packReply(id, await runCommand({ core, db, signal: gone.signal }, unpackBody(body)));
  } catch (error) {
    return packError(id, error);
  } finally {
    running.delete(id);
  }
}

port.on('message', (message: ReaderCommand | ReaderAbort) => {
  if ('abort' in message) running.get(message.abort)?.abort();
  else void answer(message).then((reply) => port.postMessage(reply, transfersOf(reply)));
});
port.postMessage(READY);
