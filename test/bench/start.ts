import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BINARY } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { shoot } from './allocated.js';
import { COMMON } from './http-cases.js';
import { emptyService, type RunningServer, type Server, service, writtenByHand } from './http-servers.js';
import { cpuSeconds, heldMib } from './process-cost.js';

/*
 * How long one waits: for a command beside `node -e 0`, for the first answer of a server beside one written by hand,
 * both with the same documents; and what the server holds of memory, when nobody asks and after many requests. Medians,
 * in turns in the same run, on an otherwise idle machine: other processes of Node share its pages, so that the whole is
 * less beside them, and the server's own memory is not. Linux only.
 *
 *   npm run bench start                       200,000 documents, nine rounds
 *   npm run bench start -- --documents 1000 --rounds 3
 *   npm run bench start -- --alone            without the one written by hand, which has to be installed first
 */

const { values: options } = parseArgs({
  options: {
    documents: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '9' },
    alone: { type: 'boolean', default: false },
  },
});
const ROUNDS = Number(options.rounds);
const COMMANDS: readonly { name: string; argv: string[]; most?: number }[] = [
  { name: 'node -e 0', argv: ['-e', '0'] },
  { name: 'bsvc --help', argv: [BINARY, '--help'], most: 1.4 },
  { name: 'bsvc project list', argv: [BINARY, 'project', 'list'], most: 2 },
];
const MAX_RATIO = 1.3;
/** Goals of memory in MiB, and of a start in milliseconds of processor time. */
const MAX_IDLE = 46;
const MAX_LOADED = 137;
const MAX_START = 440;
const MEMORY_ROUNDS = Math.min(ROUNDS, 3);
const MEMORY_DOCUMENTS = 10_000;
/** Some ten seconds after a start, or after what kept it busy, V8 collects what is left of it and shrinks its heap. */
const REST_MS = 20_000;
const REQUESTS = 30_000;

const judge = (ratio: number, most: number): string =>
  `, ${ratio.toFixed(2)}x (${most}: ${ratio <= most ? 'met' : 'MISSED'})`;

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

console.log(`load ${loadavg()[0]!.toFixed(1)}; goals in parentheses`);
const folder = await openTempDir();
try {
  const documents = Number(options.documents);
  const own = await service(folder.path, documents);
  compareCommands(folder.path);
  await compareServers(own, options.alone ? null : writtenByHand(folder.path, documents));
  await measureMemory(folder.path);
} finally {
  await folder.remove();
}

function compareCommands(path: string): void {
  const env = { PATH: process.env.PATH, BSVC_DATA_DIR: `${path}/data` };
  const times = COMMANDS.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, { argv }] of COMMANDS.entries()) {
      const begun = performance.now();
      spawnSync(process.execPath, argv, { stdio: 'ignore', env });
      times[at]!.push(performance.now() - begun);
    }
  }
  const floor = median(times[0]!);
  for (const [at, { name, most }] of COMMANDS.entries()) {
    const ms = median(times[at]!);
    console.log(`${name.padEnd(24)} ${Math.round(ms)} ms${most ? judge(ms / floor, most) : ''}`);
  }
}

async function compareServers(own: Server, byHand: Server | null): Promise<void> {
  const servers = [...(byHand ? [byHand] : []), own];
  const starts = servers.map((): Start[] => []);
  // The first start of each fills it.
  for (const server of servers) await measureStart(server);
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, server] of servers.entries()) starts[at]!.push(await measureStart(server));
  const floor = byHand && median(starts[0]!.map(({ ms }) => ms));
  for (const [at, { name }] of servers.entries()) {
    const of = (what: keyof Start): number => median(starts[at]!.map((start) => start[what]));
    console.log(
      `${`${name}, first answer`.padEnd(24)} ${Math.round(of('ms'))} ms${name === own.name && floor ? judge(of('ms') / floor, MAX_RATIO) : ''}, ` +
        `${Math.round(of('cpuMs'))} ms of processor time`,
    );
  }
}

interface Start {
  ms: number;
  cpuMs: number;
}

function cpuMsOf(pid: number): number {
  const { user, system } = cpuSeconds(pid);
  return (user + system) * 1000;
}

async function measureStart(server: Server): Promise<Start> {
  const { pid, startMs, stop } = await server.start();
  const cpuMs = cpuMsOf(pid);
  await stop();
  return { ms: startMs, cpuMs };
}

interface Held {
  startMs: number;
  pss: number;
  own: number;
}

/** One table of what a start costs, and of the memory at rest after it and at once after requests. */
async function measureMemory(path: string): Promise<void> {
  const stored = await service(join(path, 'stored'), MEMORY_DOCUMENTS);
  const { requests } = COMMON.at(-1)!;
  const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, REST_MS));
  const load = async ({ url, world }: RunningServer): Promise<void> => shoot(url, requests(world), REQUESTS);
  // The first start with documents adds some more.
  await measureStart(stored);
  const rows: { name: string; most: number; measure: (round: number) => Promise<Held> }[] = [
    {
      name: 'at rest after a first start',
      most: MAX_IDLE,
      measure: (round) => hold(emptyService(join(path, `empty-${round}`)), rest),
    },
    { name: `at rest, ${MEMORY_DOCUMENTS} documents`, most: MAX_IDLE, measure: () => hold(stored, rest) },
    { name: `after ${REQUESTS} requests`, most: MAX_LOADED, measure: () => hold(stored, load) },
  ];
  const held = rows.map((): Held[] => []);
  for (let round = 0; round < MEMORY_ROUNDS; round++)
    for (const [at, { measure }] of rows.entries()) held[at]!.push(await measure(round));
  console.log(
    `\n${''.padEnd(30)} ${`start, ms (${MAX_START})`.padStart(16)} ${'PSS, MiB'.padStart(16)} ${'own'.padStart(6)}`,
  );
  for (const [at, { name, most }] of rows.entries()) {
    const of = (what: keyof Held): string => median(held[at]!.map((each) => each[what])).toFixed(0);
    const pss = `${of('pss')} (${most}${Number(of('pss')) <= most ? '' : ', MISSED'})`;
    console.log(`${name.padEnd(30)} ${of('startMs').padStart(16)} ${pss.padStart(16)} ${of('own').padStart(6)}`);
  }
}

async function hold<T extends Omit<RunningServer, 'world'>>(
  server: { start: () => Promise<T> },
  meanwhile: (running: T) => Promise<void>,
): Promise<Held> {
  const running = await server.start();
  try {
    const startMs = cpuMsOf(running.pid);
    await meanwhile(running);
    return { startMs, ...heldMib(running.pid) };
  } finally {
    await running.stop();
  }
}
