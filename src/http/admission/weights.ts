/** Milliseconds of all the work on a body: parsing, checking, storing, answering; measured by the soak `strangers`. */
const BODY_MS_PER_BYTE = 12 / 1024 ** 2;
const BODY_MS_PER_VALUE = 1.2 / 1000;
/** Milliseconds of counting its values. */
const SCAN_MS_PER_BYTE = 3 / 1024 ** 2;
/** Milliseconds of reading a query: its fields are looked up, its filters checked and put together. */
const QUERY_MS_PER_CHARACTER = 0.0004;
/** Milliseconds of making and sending a reply. */
const REPLY_MS_PER_BYTE = 8 / 1024 ** 2;

/** About how long the event loop is kept by counting the values of a body. */
export function estimateScan(bytes: number): number {
  return bytes * SCAN_MS_PER_BYTE;
}

/** About how long the event loop is kept by the work on a JSON body. */
export function estimateBody(bytes: number, values: number): number {
  return bytes * BODY_MS_PER_BYTE + values * BODY_MS_PER_VALUE;
}

/** About how long the event loop is kept by reading the query of a request or of a subscription. */
export function estimateQuery(characters: number): number {
  return characters * QUERY_MS_PER_CHARACTER;
}

/** About how long making a reply of a number of bytes keeps the event loop, in milliseconds. */
export function estimateReply(bytes: number): number {
  return bytes * REPLY_MS_PER_BYTE;
}

/**
 * Bytes of memory that the work on a body takes beside the body itself, for each of its bytes and values: its text,
 * what is parsed, checked and encoded of it, and the copies in the engine and its reader threads.
 */
const WORK_PER_BYTE = 4;
const WORK_PER_VALUE = 200;

/** About how many bytes of memory the work on a JSON body takes. */
export function estimateMemory(bytes: number, values: number): number {
  return bytes * WORK_PER_BYTE + values * WORK_PER_VALUE;
}

/** Upper bounds of the classes in which ratios are counted. */
const BOUNDS = [0.1, 0.3, 1, 3, 10] as const;

/** How far estimates were off, by kind of work. */
export class TurnRatios {
  readonly #byKind = new Map<string, number[]>();

  note(kind: string, ratio: number): void {
    let counts = this.#byKind.get(kind);
    if (!counts) this.#byKind.set(kind, (counts = Array<number>(BOUNDS.length + 1).fill(0)));
    let at = 0;
    while (at < BOUNDS.length && ratio > BOUNDS[at]!) at++;
    counts[at]!++;
  }

  /** Cumulative, as a histogram has them. */
  counts(): { labels: Record<string, string>; value: number }[] {
    return [...this.#byKind].flatMap(([kind, counts]) => {
      let sum = 0;
      return counts.map((count, at) => ({ labels: { kind, le: String(BOUNDS[at] ?? '+Inf') }, value: (sum += count) }));
    });
  }
}
