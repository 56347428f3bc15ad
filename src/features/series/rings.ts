/** The fixed set of figures over time: none per project, document or user, so that they never grow. */
export const FIGURES = [
  'requests2xx',
  'requests3xx',
  'requests4xx',
  'requests5xx',
  'p50Ms',
  'p95Ms',
  'p99Ms',
  'inFlight',
  'eventLoopLagMs',
  'webhooksDelivered',
  'webhooksFailed',
  'mailsSent',
  'mailsFailed',
  'storedBytes',
] as const;
export type SeriesName = (typeof FIGURES)[number];

/** One value of each series; null where there is none. */
export type Sample = Record<SeriesName, number | null>;

/** How several samples become one: rates are averaged, of times and loads the worst counts, of sizes the last. */
const TOGETHER: Record<SeriesName, (values: readonly number[]) => number> = {
  requests2xx: mean,
  requests3xx: mean,
  requests4xx: mean,
  requests5xx: mean,
  p50Ms: max,
  p95Ms: max,
  p99Ms: max,
  inFlight: max,
  eventLoopLagMs: max,
  webhooksDelivered: mean,
  webhooksFailed: mean,
  mailsSent: mean,
  mailsFailed: mean,
  storedBytes: (values) => values.at(-1)!,
};

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function max(values: readonly number[]): number {
  return Math.max(...values);
}

/** The last samples at a fixed distance, in a fixed amount of memory; a moment without a sample is a gap. */
export interface Ring {
  readonly stepMs: number;
  put(sample: Sample, nowMs: number): void;
  /** The values of each series from the oldest to now, null for gaps. */
  read(nowMs: number): { fromMs: number; values: Record<SeriesName, (number | null)[]> };
  /** The samples from `fromMs` to before `toMs` as one; null when there are none. */
  summarise(fromMs: number, toMs: number): Sample | null;
}

export function openRing(stepMs: number, length: number): Ring {
  const values = new Float64Array(length * FIGURES.length).fill(NaN);
  /** The slot that was written last, counted from 1970. */
  let newest = -1;
  const place = (slot: number): number => (slot % length) * FIGURES.length;
  /** Makes gaps of these slots, at most of as many as there are. */
  const empty = (from: number, to: number): void => {
    for (let slot = Math.max(from, to - length + 1); slot <= to; slot++) {
      values.fill(NaN, place(slot), place(slot) + FIGURES.length);
    }
  };
  const isKept = (slot: number): boolean => slot >= 0 && slot <= newest && slot > newest - length;
  const at = (slot: number, series: number): number | null => {
    const value = isKept(slot) ? values[place(slot) + series]! : NaN;
    return Number.isNaN(value) ? null : value;
  };
  return {
    stepMs,
    put(sample, nowMs) {
      const slot = Math.floor(nowMs / stepMs);
      // Of a clock that was set back, what it noted of a time that is still to come goes; ahead, what it leaves out.
      if (slot < newest) empty(slot + 1, newest);
      else empty(newest + 1, slot - 1);
      newest = slot;
      FIGURES.forEach((name, series) => (values[place(slot) + series] = sample[name] ?? NaN));
    },
    read(nowMs) {
      const last = Math.floor(nowMs / stepMs);
      const first = last - length + 1;
      const list = (series: number): (number | null)[] => Array.from({ length }, (_, n) => at(first + n, series));
      const entries = FIGURES.map((name, series) => [name, list(series)] as const);
      return { fromMs: first * stepMs, values: Object.fromEntries(entries) as Record<SeriesName, (number | null)[]> };
    },
    summarise(fromMs, toMs) {
      const summary = {} as Sample;
      let isEmpty = true;
      FIGURES.forEach((name, series) => {
        const found: number[] = [];
        for (let slot = Math.ceil(fromMs / stepMs); slot * stepMs < toMs; slot++) {
          const value = at(slot, series);
          if (value !== null) found.push(value);
        }
        summary[name] = found.length === 0 ? null : TOGETHER[name](found);
        isEmpty &&= found.length === 0;
      });
      return isEmpty ? null : summary;
    },
  };
}
