import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { openTempDir } from '../helpers/temp-dir.js';
import { measureAllocated } from './allocated.js';
import { type Case, COMMON, OWN } from './http-cases.js';
import { BESIDE_NAME, type RunningServer, type Server, service } from './http-servers.js';
import { threadMicros } from './process-cost.js';

/*
 * This tree beside a commit. Both services are up at once and idle before anything is counted; each operation is warmed
 * by a number of requests and measured in slices, in turn, so that whatever else the machine does meets both. Printed
 * are ratios of processor time, this tree through the commit, each with the interval of 95 of 100 resamples of its
 * slices; and KiB allocated by a request, which no load changes. Linux only.
 *
 *   npm run bench compare <commit>
 *   npm run bench compare <commit> -- --slices 40 --requests 1000 --only get,update
 */

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    documents: { type: 'string', default: '10000' },
    slices: { type: 'string', default: '24' },
    requests: { type: 'string', default: '1000' },
    only: { type: 'string', default: '' },
  },
});
const [commit] = positionals;
if (commit === undefined) throw new Error('Name the commit to compare with: npm run bench compare <commit>');
const CONNECTIONS = 32;
const WARM = 6_000;
const STARTS = 7;
const RESAMPLES = 2_000;
/** Of both processors: a service that is used by nobody spends less. */
const IDLE_MICROS = 20_000;
const CASES = [...COMMON, ...OWN].filter(
  ({ name, isSlow }) => !isSlow && options.only.split(',').some((part) => name.includes(part)),
);

const checkout = buildCommit(commit);
const folder = await openTempDir();
try {
  const documents = Number(options.documents);
  const servers = [
    await service(join(folder.path, 'own'), documents),
    await service(join(folder.path, BESIDE_NAME), documents, checkout),
  ] as const;
  console.log(`this tree through ${commit}, load ${loadavg()[0]!.toFixed(1)}; processor time of a request`);
  if (options.only === '') printStart(await measureStarts(servers));
  const running = [await servers[0].start(), await servers[1].start()] as const;
  try {
    for (const one of CASES) print(one.name, await measureSlices(running, one));
  } finally {
    for (const each of running) await each.stop();
  }
  console.log('KiB allocated by a request');
  const [own, beside] = [
    await measureAllocated(join(folder.path, 'allocated')),
    await measureAllocated(join(folder.path, 'allocated-beside'), checkout),
  ];
  for (const [name, kib] of own) {
    const before = beside.get(name)!;
    console.log(`${name.padEnd(28)} ${kib.toFixed(1)} (${before.toFixed(1)}), ${(kib / before).toFixed(2)}x`);
  }
} finally {
  await folder.remove();
}

/** The folder of the commit as it was built, from an earlier run where there was one. */
function buildCommit(name: string): string {
  const git = (...words: string[]): Buffer => execFileSync('git', words, { maxBuffer: 2 ** 30 });
  const sha = git('rev-parse', `${name}^{commit}`).toString().trim();
  const place = join(process.cwd(), 'node_modules', '.cache', 'bench', sha);
  if (existsSync(join(place, 'dist', 'main.js'))) return place;
  mkdirSync(place, { recursive: true });
  // A second configuration below the project's own would stop the linter.
  execFileSync('tar', ['-x', '--exclude=.oxlintrc.json', '-C', place], { input: git('archive', sha) });
  const isSame = git('show', `${sha}:package-lock.json`).equals(readFileSync('package-lock.json'));
  const packages = isSame
    ? spawnSync('sh', [
        '-c',
        'mkdir "$0/node_modules" && cp -al node_modules/* node_modules/.[!c.]* "$0/node_modules"',
        place,
      ])
    : spawnSync('npm', ['ci', '--silent'], { cwd: place, stdio: 'inherit' });
  if (packages.status !== 0) throw new Error(`the packages of ${name} cannot be installed`);
  const built = spawnSync('npm', ['run', '--silent', 'build'], { cwd: place, stdio: 'ignore' });
  if (built.status !== 0) throw new Error(`${name} cannot be built`);
  return place;
}

async function measureStarts(servers: readonly [Server, Server]): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let round = 0; round < STARTS; round++) {
    const spent: number[] = [];
    for (const server of servers) {
      const started = await server.start();
      spent.push(threadMicros(started.pid));
      await started.stop();
    }
    pairs.push(spent as unknown as Pair);
  }
  return pairs;
}

/** Processor time of this tree and of the commit, in microseconds. */
type Pair = readonly [own: number, beside: number];

async function measureSlices(running: readonly [RunningServer, RunningServer], one: Case): Promise<Pair[]> {
  for (const each of running) await shoot(each, one, WARM);
  for (const each of running) await untilIdle(each.pid);
  const pairs: Pair[] = [];
  for (let slice = 0; slice < Number(options.slices); slice++) {
    // Who comes first changes, for what the other one leaves behind in the machine.
    const order = slice % 2 === 0 ? [0, 1] : [1, 0];
    const spent = [0, 0];
    for (const at of order) spent[at] = await shoot(running[at]!, one, Number(options.requests));
    pairs.push(spent as unknown as Pair);
  }
  return pairs;
}

/** The processor time of a request in microseconds, of all threads of the service. */
async function shoot({ url, pid, world }: RunningServer, one: Case, amount: number): Promise<number> {
  const connections = Math.min(CONNECTIONS, one.mostConnections ?? CONNECTIONS);
  const before = threadMicros(pid);
  const seen = await autocannon({ url, connections, amount, requests: one.requests(world) });
  if (seen.non2xx + seen.errors > 0) throw new Error(`${one.name}: ${seen.non2xx + seen.errors} requests failed`);
  return (threadMicros(pid) - before) / amount;
}

async function untilIdle(pid: number): Promise<void> {
  for (let spent = Infinity; spent > IDLE_MICROS;) {
    const before = threadMicros(pid);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    spent = threadMicros(pid) - before;
  }
}

function printStart(pairs: readonly Pair[]): void {
  print('start until the first answer', pairs);
}

function print(name: string, pairs: readonly Pair[]): void {
  const [low, high] = interval(pairs);
  const micros = (at: 0 | 1): string => median(pairs.map((pair) => pair[at])).toFixed(0);
  const range = `[${low.toFixed(2)}, ${high.toFixed(2)}]`;
  console.log(`${name.padEnd(28)} ${ratioOf(pairs).toFixed(2)}x ${range}   ${micros(0)} us (${micros(1)})`);
}

function ratioOf(pairs: readonly Pair[]): number {
  return median(pairs.map(([own, beside]) => own / beside));
}

/** Where 95 of 100 ratios lie when the slices are drawn anew, each as often as chance has it. */
function interval(pairs: readonly Pair[]): [low: number, high: number] {
  const drawn = Array.from({ length: RESAMPLES }, () =>
    ratioOf(pairs.map(() => pairs[Math.floor(Math.random() * pairs.length)]!)),
  ).sort((a, b) => a - b);
  return [drawn[Math.floor(RESAMPLES * 0.025)]!, drawn[Math.floor(RESAMPLES * 0.975)]!];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}
