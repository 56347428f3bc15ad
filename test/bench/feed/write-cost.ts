import { openEngine } from '../../../src/engine/index.js';
import { openTempDir } from '../../helpers/temp-dir.js';

const UPDATES = 500;
const ROUNDS = 40;

const KINDS = ['without', 'with'] as const;

/** Microseconds of processor time of one update, without a log and with one. */
export type WriteFigures = Record<(typeof KINDS)[number], number>;

/** What a log costs a write of the engine with nobody listening, both in turns of the same run. */
export async function measureWrites(): Promise<WriteFigures> {
  const dir = await openTempDir();
  const engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
  try {
    for (const name of KINDS) {
      await engine
        .db('bench')
        .collection(name)
        .insertMany(
          Array.from({ length: 1_000 }, (_, n) => ({
            _id: n as never,
            title: `document ${n}`,
            state: 'open',
            userId: 'a'.repeat(24),
            n,
            tags: ['one', 'two'],
            meta: { level: n % 5, lang: 'en' },
            isDeleted: false,
          })),
        );
    }
    await engine.changeLogs('bench').begin('with', { first: ['isDeleted', 'userId'], omit: ['_bsvc'] });
    const costs = { without: [] as number[], with: [] as number[] };
    for (let round = -4; round < ROUNDS; round++) {
      // Who comes first changes, so that what the other leaves behind is shared.
      for (const name of round % 2 === 0 ? KINDS : KINDS.toReversed()) {
        const store = engine.db('bench').collection<{ _id: number }>(name);
        const before = process.cpuUsage();
        for (let at = 0; at < UPDATES; at++) {
          await store.updateOne({ _id: (at * 7) % 1_000 }, { $set: { n: at + round } } as never);
        }
        const { user, system } = process.cpuUsage(before);
        // The first rounds warm up.
        if (round >= 0) costs[name].push((user + system) / UPDATES);
      }
    }
    return { without: median(costs.without), with: median(costs.with) };
  } finally {
    await engine.close();
    await dir.remove();
  }
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
