import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureStreams } from './feed/idle-streams.js';
import { measureWrites } from './feed/write-cost.js';

/*
 * `npm run bench changes -- [--only writes,streams] [--streams 10000]`: what a log costs a write, and what streams cost
 * at rest and by the delivery. Each figure stands beside its goal.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'writes,streams' },
    streams: { type: 'string', default: '10000' },
  },
});

interface Goal {
  goal: string;
  value: number;
  unit: string;
  isMet: boolean;
}

const PARTS: Readonly<Record<string, () => Promise<Goal[]>>> = {
  async writes() {
    const figures = await measureWrites();
    const share = (figures.with / figures.without - 1) * 100;
    say(`an update: ${figures.without.toFixed(1)} µs of processor time, with a log ${figures.with.toFixed(1)} µs`);
    return [atMost('processor time that the log adds to an update', share, 10, '%')];
  },
  async streams() {
    const figures = await measureStreams(Number(values.streams));
    const each = ((figures.idleMib - figures.baseMib) * 1024) / figures.streams;
    say(
      `${figures.streams} streams: opened in ${figures.openedSeconds.toFixed(1)} s by ${figures.openedProcessorSeconds.toFixed(1)} s of processor time; the process had ${figures.baseMib.toFixed(0)} MiB before and has ${figures.idleMib.toFixed(0)}`,
    );
    return [
      atMost('memory of an idle stream', each, 15, 'KiB'),
      atMost('processor at rest', figures.idleProcessorShare * 100, 2, '%'),
      atMost('processor time of a delivery', figures.processorMicrosPerDelivery, 30, 'µs'),
      atMost('one change to all', figures.toAllMs, (300 * figures.streams) / 10_000, 'ms'),
    ];
  },
};

function atMost(goal: string, value: number, most: number, unit: string): Goal {
  return { goal: `${goal}: at most ${most} ${unit}`, value, unit, isMet: value <= most };
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

for (const name of values.only.split(',')) {
  const part = PARTS[name];
  if (!part) throw new Error(`no part "${name}": choose of ${Object.keys(PARTS).join(', ')}`);
  const goals = await part();
  const load = loadavg()[0]!.toFixed(1);
  for (const { goal, value, unit, isMet } of goals) {
    say(`${isMet ? 'met   ' : 'MISSED'} ${goal} — ${value.toFixed(1)} ${unit} (load ${load})`);
  }
}
