import { nextTurn } from '../scheduler.js';
import { CODES, EngineError } from '../errors.js';
import type { Call } from './command.js';

/** How long one command may keep the event loop before it lets others in. */
const TURN_MS = 2;
const TURN_DOCUMENTS = 512;

/** The share of this thread that a read may take while others wait for it. */
const STAY_MS = 3;

/** Thrown by a read that is better done by a reader thread. */
export const TOO_LONG_HERE = new EngineError(CODES.Interrupted, 'the command goes on in another thread');

/** A document beyond this is decoded and worked on by a reader thread, if there is one. */
export const STAY_DOCUMENT_BYTES = 32 * 1024;

/** The part of a pace that a search uses. */
export type SearchPace = Pick<Pace, 'due' | 'rest' | 'suspend' | 'resume' | 'mayLeave'>;

/** To be told the size of a document before it is decoded: throws TOO_LONG_HERE for a large one. */
export function leaveIfLarge({ mayLeave }: Pick<Pace, 'mayLeave'>, bytes: number): void {
  if (mayLeave && bytes > STAY_DOCUMENT_BYTES) throw TOO_LONG_HERE;
}

/**
 * Keeps a long command from blocking short ones: work goes on while `due` says false, then `rest` gives the event loop
 * a turn and checks the time limit (error 50) and whether the client is still there (11601).
 */
export class Pace {
  private turnStarted = performance.now();
  private deadline: number;
  private documents = 0;
  private suspendedAt: number | null = null;
  private workedMs = 0;

  constructor(
    maxTimeMs: number | undefined,
    private signal: AbortSignal | undefined,
    /** Until the first batch is there the command may still begin again in another thread. */
    public mayLeave = false,
  ) {
    this.deadline = maxTimeMs === undefined || maxTimeMs === 0 ? Infinity : this.turnStarted + maxTimeMs;
  }

  /** Stops the clock between two batches of a cursor: the time limit is for work, not for waiting. */
  suspend(): void {
    this.suspendedAt = performance.now();
    this.mayLeave = false;
  }

  /**
   * Begins a new turn without waiting, when other commands' turns lay in between. A cursor may be read on over another
   * connection than the one that opened it, which then decides whether there is still a client.
   */
  resume(signal = this.signal): void {
    this.signal = signal;
    this.turnStarted = performance.now();
    this.documents = 0;
    if (this.suspendedAt !== null) this.deadline += this.turnStarted - this.suspendedAt;
    this.suspendedAt = null;
    this.check();
  }

  /** To be told how many documents were looked at since it was last asked. */
  due(documents: number): boolean {
    this.documents += documents;
    return this.documents >= TURN_DOCUMENTS || performance.now() - this.turnStarted >= TURN_MS;
  }

  async rest(): Promise<void> {
    if (this.mayLeave) this.leaveWhenLong();
    await nextTurn();
    this.turnStarted = performance.now();
    this.documents = 0;
    this.check();
  }

  /** A turn counts for no more than it may last: this process may have waited for a processor in it. */
  private leaveWhenLong(): void {
    this.workedMs += Math.min(performance.now() - this.turnStarted, TURN_MS);
    if (this.workedMs > STAY_MS) throw TOO_LONG_HERE;
  }

  check(): void {
    if (performance.now() > this.deadline) {
      throw new EngineError(CODES.MaxTimeMSExpired, 'operation exceeded time limit');
    }
    if (this.signal?.aborted === true) throw new EngineError(CODES.Interrupted, 'operation was interrupted');
  }
}

/** The pace of a command that only reads and may go on in another thread; its clock starts now. */
export function openPace(call: Call, maxTimeMs: number | undefined): Pace {
  return new Pace(maxTimeMs, call.signal, call.core.readers !== null);
}
