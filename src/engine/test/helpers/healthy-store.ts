import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DATA_FILE, lookAfterKill, openEngine } from '../../index.js';
import { openRandom } from './random.js';

/** What came of a store that was filled by processes of which most were killed. */
export interface HealthyStoreReport {
  kills: number;
  documents: number;
  megabytes: number;
  /** Pages that are neither in use nor free. */
  lostPages: number;
  /** Each reason for which the store was refused, not written to, or found damaged. */
  problems: string[];
}

/** Fills a store to so many documents; after each kill it has to open, take a write and be found whole. */
export async function fillAndKill(
  dataDir: string,
  { documents, kills, seed }: { documents: number; kills: number; seed: number },
  onProgress: (line: string) => void = () => undefined,
): Promise<HealthyStoreReport> {
  const random = openRandom(seed);
  const report: HealthyStoreReport = { kills: 0, documents: 0, megabytes: 0, lostPages: 0, problems: [] };
  for (let isOver = false; !isOver && report.problems.length === 0;) {
    const wasKilled = await writeUntilKilled(dataDir, documents, random.below(1_000_000), () => {
      // Spread over all steps, of which some six in ten are imports.
      return report.kills < kills && random.chance((0.7 * kills * 10_000) / documents);
    });
    if (wasKilled) report.kills++;
    isOver = !wasKilled;
    await judge(dataDir, report);
    onProgress(
      `${report.kills} kills, ${report.documents} documents, ${report.megabytes} MB: ${report.problems.join()}`,
    );
  }
  return report;
}

/** False for a process that ended by itself. */
async function writeUntilKilled(
  dataDir: string,
  documents: number,
  seed: number,
  isToKill: () => boolean,
): Promise<boolean> {
  const script = join(import.meta.dirname, 'store-writer.ts');
  const words = ['--import', 'tsx', script, dataDir, String(documents), String(seed)];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit') as Promise<[code: number | null, signal: string | null]>;
  for await (const _line of createInterface({ input: child.stdout })) if (isToKill()) child.kill('SIGKILL');
  const [code, signal] = await ended;
  if (code !== 0 && signal !== 'SIGKILL') throw new Error(`the writer ended with ${code ?? signal}`);
  return signal === 'SIGKILL';
}

async function judge(dataDir: string, report: HealthyStoreReport): Promise<void> {
  try {
    await lookAfterKill(dataDir, 600_000);
    const engine = openEngine({ dataDir, durability: 'relaxed', countBy: 'isDeleted' });
    const items = engine.db('d').collection<{ _id: number; slot: string; group: number; text: string }>('items');
    await items.updateOne({ _id: -1 }, { $set: { slot: 'judge', group: report.kills, text: '' } }, { upsert: true });
    report.problems.push(...(await engine.verify({ onLostPages: (pages) => (report.lostPages = pages) })));
    if (engine.refusal() !== null) report.problems.push(engine.refusal()!);
    report.documents = await items.countDocuments({});
    await engine.close();
  } catch (error) {
    report.problems.push(String(error));
  }
  report.megabytes = Math.round(statSync(join(dataDir, DATA_FILE)).size / 2 ** 20);
}
