/** Milliseconds after which a loop on one document is ended; until then nothing else on its thread runs. */
const DOCUMENT_MS = 60;
/** Factor by which a busy machine may stretch that. */
const MAX_STRETCH = 20;

/** Says when work that cannot be interrupted has taken too long. Starts stopped: `restart` begins. */
export class Stopwatch {
  private started = 0;
  private processStarted: number | null = null;

  restart(): void {
    this.started = performance.now();
    this.processStarted = null;
  }

  /**
   * True once `DOCUMENT_MS` are over. What other processes take of that does not count for a while, so that a busy
   * machine refuses no more than an idle one; the processor's time is asked for only when the work takes long, because
   * that costs as much as a small document.
   */
  isOver(): boolean {
    const elapsed = performance.now() - this.started;
    if (elapsed < DOCUMENT_MS / 4) return false;
    this.processStarted ??= processMs();
    return processMs() - this.processStarted > (DOCUMENT_MS * 3) / 4 || elapsed > DOCUMENT_MS * MAX_STRETCH;
  }
}

function processMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
