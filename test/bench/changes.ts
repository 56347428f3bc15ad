import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureDelay } from './feed/followers.js';
import { measureStreams } from './feed/idle-streams.js';
import { measureRuledFollowers } from './feed/ruled-followers.js';

/*
 * `npm run bench changes -- [--only windows,ruled] [--streams 10000]`: what followers cost at rest and by the delivery,
 * of a window beside those of all documents, and under a rule with a set beside row-level security. Each figure stands
 * beside its goal.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'windows,ruled' },
    streams: { type: 'string', default: '10000' },
  },
});

interface Goal {
  goal: string;
  value: number;
  most: number;
  unit: string;
}

const PARTS: Readonly<Record<string, () => Promise<Goal[]>>> = {
  async windows() {
    const streams = Number(values.streams);
    const [all, window] = [await measureStreams(streams), await measureStreams(streams, 'window')];
    const times = (of: (figures: typeof all) => number): number => of(window) / of(all);
    const kibOf = ({ idleMib, baseMib }: typeof all): number => ((idleMib - baseMib) * 1024) / streams;
    say(
      `${streams} followers of a window: ${kibOf(window).toFixed(1)} KiB each, ${window.processorMicrosPerDelivery.toFixed(1)} µs a delivery, ${window.toAllMs.toFixed(0)} ms to all; of all documents ${kibOf(all).toFixed(1)} KiB, ${all.processorMicrosPerDelivery.toFixed(1)} µs, ${all.toAllMs.toFixed(0)} ms`,
    );
    return [
      atMost('memory of a follower of a window', kibOf(window), 15, 'KiB'),
      atMost(
        'a write to followers of a window, times to those of all documents',
        times(({ processorMicrosPerDelivery }) => processorMicrosPerDelivery),
        1.5,
        'x',
      ),
      atMost('commit to client among 1,000 windows, p50', await measureDelay(), 6, 'ms'),
    ];
  },
  async ruled() {
    const streams = Number(values.streams);
    const byOwner = await measureRuledFollowers(streams, 'owner');
    const bySet = await measureRuledFollowers(streams, 'set');
    for (const [name, figures] of Object.entries({ 'row-level security': byOwner, 'a set': bySet })) {
      say(
        `${streams} streams of ${figures.users} users under ${name}: ${figures.openedMicros.toFixed(0)} µs to open one, ${figures.kibEach.toFixed(1)} KiB each; a change that one user sees ${figures.changeMicros.toFixed(0)} µs`,
      );
    }
    const { shared, joining } = bySet;
    say(
      `under a set: a change that all see ${shared.ms.toFixed(0)} ms, ${shared.micros.toFixed(1)} µs a delivery; a new membership ${joining.micros.toFixed(0)} µs`,
    );
    return [
      atMost('a change under a set, times row-level security', bySet.changeMicros / byOwner.changeMicros, 1.2, 'x'),
      atMost('memory of a stream under a set', bySet.kibEach, 15, 'KiB'),
      atMost('a new membership to its user’s streams, p50', joining.ms, 50, 'ms'),
    ];
  },
};

function atMost(goal: string, value: number, most: number, unit: string): Goal {
  return { goal, value, most, unit };
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

for (const name of values.only.split(',')) {
  const part = PARTS[name];
  if (!part) throw new Error(`no part "${name}": choose of ${Object.keys(PARTS).join(', ')}`);
  const goals = await part();
  const load = loadavg()[0]!.toFixed(1);
  for (const { goal, value, most, unit } of goals) {
    say(
      `${value <= most ? 'met   ' : 'MISSED'} ${goal}: at most ${most} ${unit} — ${value.toFixed(1)} ${unit} (load ${load})`,
    );
  }
}
