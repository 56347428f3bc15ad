import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureFollowers, measureRestart } from './feed/followers.js';
import { measureStreams } from './feed/idle-streams.js';
import { measureRuledFollowers } from './feed/ruled-followers.js';
import { measureRequests } from './feed/request-cost.js';
import { measureWrites } from './feed/write-cost.js';

/*
 * `npm run bench changes -- [--only writes,requests,streams,windows,followers,ruled,restart] [--streams 10000]`:
 * what a log costs a write and a request, what streams cost at rest and by the delivery, how late followers hear of
 * steady writes, and how soon all are back after a restart. Each figure stands beside its goal.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'writes,requests,streams,windows,followers,ruled,restart' },
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
  async requests() {
    const figures = await measureRequests();
    say(`a PATCH: ${figures.without.toFixed(0)} µs of processor time, with a log ${figures.with.toFixed(0)} µs`);
    return [atMost('processor time that the log adds to a request', figures.share * 100, 3, '%')];
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
  async windows() {
    const streams = Number(values.streams);
    const [all, window] = [await measureStreams(streams), await measureStreams(streams, 'window')];
    const late = await measureFollowers(1_000, 100, 10, { rooms: 1_000, query: '&sort=-createdAt&limit=20' });
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
      atMost('commit to client among 1,000 windows, p50', late.p50, 6, 'ms'),
    ];
  },
  async followers() {
    const figures = await measureFollowers(1_000, 500, 10);
    say(
      `${figures.writesPerSecond.toFixed(0)} writes a second, 1,000 followers, ${figures.deliveries} deliveries, ${(figures.processorShare * 100).toFixed(0)} % of a processor`,
    );
    return [
      atMost('commit to client, p50', figures.p50, 15, 'ms'),
      atMost('commit to client, p99', figures.p99, 60, 'ms'),
      atLeast('writes a second', figures.writesPerSecond, 490),
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
  async restart() {
    const streams = Number(values.streams);
    const { seconds, open, microsEach, refused } = await measureRestart(streams);
    say(
      `${open} of ${streams} streams are back after a restart, each by ${microsEach.toFixed(0)} µs of processor time; refused: ${JSON.stringify(refused)}`,
    );
    return [
      atLeast('streams that are back', open, streams),
      atMost('time until all are back', seconds, 30, 's'),
      atMost('refusals by 503', refused['503'] ?? 0, 0, ''),
    ];
  },
};

function atLeast(goal: string, value: number, least: number): Goal {
  return { goal: `${goal}: at least ${least}`, value, unit: '', isMet: value >= least };
}

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
