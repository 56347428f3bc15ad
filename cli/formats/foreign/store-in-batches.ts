import type { Context } from '../../shell/context.js';
import { Interrupted, presentFailure, type Failure } from '../../view/exit.js';

const BATCH = 500;
const MAX_LISTED = 1000;

export type ForeignEntry<T> = { line: number; value: T } | { line: number; problem: string };

/** The outcome of an import from another service. */
export interface ForeignReport {
  read: number;
  stored: number;
  /** There already, from an import before. */
  present: number;
  rejectedCount: number;
  rejected: { line: number; message: string }[];
}

/**
 * Stores the entries batch by batch. The failure that ended it too early is answered beside the report, which is of
 * what was done until then.
 */
export async function storeInBatches<T>(
  context: Context,
  title: string,
  entries: AsyncIterable<ForeignEntry<T>> | Iterable<ForeignEntry<T>>,
  store: (
    values: T[],
    lines: number[],
  ) => Promise<{ stored: number; present: number; rejected: { index: number; message: string }[] }>,
): Promise<{ report: ForeignReport; broken: Failure | null }> {
  const report: ForeignReport = { read: 0, stored: 0, present: 0, rejectedCount: 0, rejected: [] };
  const progress = await context.out.progress(title);
  const reject = (line: number, message: string): void => {
    report.rejectedCount += 1;
    if (report.rejected.length < MAX_LISTED) report.rejected.push({ line, message });
  };
  let batch: { line: number; value: T }[] = [];
  const flush = async (): Promise<void> => {
    const lines = batch.map(({ line }) => line);
    const values = batch.map(({ value }) => value);
    batch = [];
    if (values.length === 0) return;
    const { stored, present, rejected } = await store(values, lines);
    report.stored += stored;
    report.present += present;
    for (const { index, message } of rejected) reject(lines[index]!, message);
    progress.update(`${report.stored} stored, ${report.present} already present, ${report.rejectedCount} refused`);
  };
  let broken: Failure | null = null;
  try {
    for await (const entry of entries) {
      if (context.stop.aborted) throw new Interrupted();
      report.read += 1;
      if ('problem' in entry) reject(entry.line, entry.problem);
      else batch.push(entry);
      if (batch.length >= BATCH) await flush();
    }
    await flush();
  } catch (error) {
    if (report.stored + report.present === 0 && !context.stop.aborted) throw error;
    const failure = presentFailure(context.stop.aborted ? new Interrupted() : error);
    const next = 'Run it again to continue: documents that are already present stay as they are.';
    broken = { ...failure, message: `${failure.message} ${report.stored} stored. ${next}` };
  } finally {
    progress.stop();
  }
  report.rejected.sort((a, b) => a.line - b.line);
  return { report, broken };
}
