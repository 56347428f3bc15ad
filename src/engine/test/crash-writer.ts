/**
 * The victim of the crash test: writes as fast as it can and reports each acknowledged write on standard output, until
 * it is killed. Arguments: data directory, number of this round.
 */
import { writeSync } from 'node:fs';
import { openEngine } from '../index.js';

const [dataDir, round] = process.argv.slice(2);
const engine = openEngine({ dataDir: dataDir! });
const items = engine
  .db('crash')
  .collection<{ _id: string; n: number; slot: number; tags: string[]; body: string }>('items');
await items.createIndex({ slot: 1 }, { unique: true });
await items.createIndex({ tags: 1, n: -1 });

/** Written at once and not buffered: what was not reported was not acknowledged. */
function acknowledge(line: string): void {
  writeSync(1, `${line}\n`);
}

async function work(lane: number): Promise<void> {
  for (let n = 0; ; n++) {
    const _id = `${round!}-${lane}-${n}`;
    const slot = Number(round) * 1_000_000 + lane * 100_000 + n;
    await items.insertOne({ _id, n, slot, tags: ['a', `lane${lane}`], body: 'x'.repeat(100 + (n % 7) * 50) });
    acknowledge(`insert ${_id}`);
    if (n % 3 === 1) {
      await items.updateOne({ _id }, { $set: { n: n + 0.5, tags: ['updated'] } });
      acknowledge(`update ${_id}`);
    }
    if (n % 5 === 4) {
      const gone = `${round!}-${lane}-${n - 2}`;
      acknowledge(`deleting ${gone}`);
      await items.deleteOne({ _id: gone });
      acknowledge(`delete ${gone}`);
    }
    if (n % 50 === 49) {
      await items.insertMany(
        Array.from({ length: 20 }, (_, k) => ({
          _id: `${_id}-many${k}`,
          n: k,
          slot: slot * 100 + k + 1_000_000_000,
          tags: [],
          body: '',
        })),
      );
      acknowledge(`many ${_id}`);
    }
  }
}

acknowledge('ready');
await Promise.all([0, 1, 2, 3].map(work));
