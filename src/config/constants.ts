const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MB = 1024 ** 2;

/**
 * Values that stand beside the settings in a configuration and that no operator has a reason to change. A test that
 * needs another value hands it in (`openTestApp({ constants })`, `Io.constants`).
 */
export const CONSTANTS = {
  /** Heap of a project's process of own code. */
  hooksMemoryMb: 128,
  /** Ten megabytes in five minutes are 300 kbit/s. */
  requestTimeoutMs: 5 * MINUTE_MS,
  headersTimeoutMs: 10_000,
  /**
   * How long a client may send and take nothing. Longer than nginx, Caddy and AWS's balancers keep an unused connection
   * to a server behind them (60 s).
   */
  silenceTimeoutMs: 65_000,
  /** How long a client may take nothing of a reply that waits for it. */
  stallTimeoutMs: 10_000,
  /** Container platforms kill ten seconds after SIGTERM at the earliest; systemd's unit waits longer. */
  shutdownGraceMs: 10_000,
  /** An office behind one address; a proxy in front (`BSVC_TRUST_PROXY`) lifts the limit of connections. */
  connectionsPerAddress: 200,
  streamsPerAddress: 100,
  /** Values in the JSON body of a bulk write, a pipeline or a declaration, lists and objects included. */
  bodyValues: 50_000,
  /** Values in a document, or in any other JSON body. */
  documentValues: 20_000,
  /** MongoDB stores 16 MB, but each change of a document writes all of it again. */
  documentMaxBytes: 2 * MB,
  /** The same as the most documents of a page. */
  aggregateLimit: 1_000,
  /** Values of one membership set for one user. */
  ruleSet: 10_000,
  /** Of one project, with their payloads. */
  deliveriesMaxBytes: 1024 * MB,
  /** Bytes that the change log of a collection may have; null: as many as its documents, at least 64 MB. */
  changesMaxBytes: null as number | null,
  /** Threads of a serving process for long reads; null: as many as there are other processors. */
  readerThreads: null as number | null,
};

/** An application asks often for a user; a project may have another limit (`userRequests`). */
const USER_TIMES = 30;

/** What follows from `BSVC_MEMORY`, `BSVC_KEEP` and `BSVC_RATE_LIMIT`. */
export function deriveConstants({
  memoryBytes,
  keepMs,
  rateLimit,
}: {
  memoryBytes: number;
  keepMs: number;
  rateLimit: { count: number; windowMs: number } | null;
}) {
  const megabytes = memoryBytes / MB;
  return {
    userRateLimit: rateLimit && { ...rateLimit, count: rateLimit.count * USER_TIMES },
    bodyBudgetBytes: memoryBytes / 4,
    replyBudgetBytes: memoryBytes / 2,
    /** Conditions and listed values in the filters of open streams: half a kilobyte each. */
    liveConditions: Math.floor(megabytes * 512),
    maxInFlight: Math.floor(megabytes * 2),
    /** Clients that wait for changes. */
    streams: Math.floor(megabytes * 40),
    changesKeepMs: keepMs,
    mailKeepMs: keepMs,
    /** Most are looked at within a day, if at all. */
    deliveriesKeepMs: Math.min(keepMs, 3 * DAY_MS),
    failedDeliveriesKeepMs: keepMs,
  };
}
