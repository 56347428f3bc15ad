import { Worker } from 'node:worker_threads';
import {
  type ReaderAbort,
  type ReaderAnswer,
  type ReaderCommand,
  type ReaderNotice,
  type ReaderOptions,
  READY,
} from './messages.js';
import type { LongRead } from '../storage/long-read.js';

/** Several pipelines at once may hold 100 MB each. */
const HEAP_MB = 1024;

const IS_SOURCE = import.meta.url.endsWith('.ts');
const ENTRY = new URL(IS_SOURCE ? './reader-thread.ts' : './reader-thread.js', import.meta.url);
/** Run from source, a thread does not inherit what loads TypeScript. */
const FROM_SOURCE = `
  import('tsx/esm/api').then(({ register }) => {
    register();
    return import(${JSON.stringify(ENTRY.href)});
  });
`;

/** Callbacks for the events of a thread. */
export interface ReaderEvents {
  ready(): void;
  answer(answer: ReaderAnswer): void;
  longRead(read: LongRead): void;
  /** The thread has ended by itself. */
  ended(error: Error): void;
}

/** One thread over the data file. The process does not wait for it unless it is held. */
export class ReaderThread {
  private readonly worker: Worker;
  /** It has ended, or is ending. */
  isOver = false;
  /** The data file is open there. */
  isReady = false;

  constructor(options: ReaderOptions, events: ReaderEvents) {
    // Neither flags nor the environment of the process: what is loaded with every program would be loaded here again.
    const resourceLimits = { maxOldGenerationSizeMb: options.heapMb ?? HEAP_MB };
    const settings = { workerData: options, resourceLimits, execArgv: [], env: {} };
    this.worker = IS_SOURCE ? new Worker(FROM_SOURCE, { ...settings, eval: true }) : new Worker(ENTRY, settings);
    const end = (error: Error): void => {
      if (this.isOver) return;
      this.isOver = true;
      events.ended(error);
    };
    this.worker.on('message', (message: ReaderAnswer | ReaderNotice | typeof READY) => {
      if (this.isOver) return;
      if (typeof message === 'object' && 'longRead' in message) {
        events.longRead(message.longRead);
        return;
      }
      if (message !== READY) {
        events.answer(message);
        return;
      }
      this.isReady = true;
      events.ready();
    });
    this.worker.on('error', end);
    this.worker.on('exit', (code) => {
      end(new Error(`a reader thread ended by itself with ${code}`));
    });
  }

  send(message: ReaderCommand | ReaderAbort): void {
    this.worker.postMessage(message, 'body' in message ? [message.body.buffer as ArrayBuffer] : []);
  }

  /** Keeps the process alive for this thread's sake, or no longer. */
  hold(held: boolean): void {
    if (held) this.worker.ref();
    else this.worker.unref();
  }

  /** Ends the thread wherever it is; nothing is told of it any more. */
  async end(): Promise<void> {
    this.isOver = true;
    await this.worker.terminate();
  }
}
