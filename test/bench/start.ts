import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { BINARY } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { type Server, service, writtenByHand } from './http-servers.js';
import { cpuSeconds } from './process-cost.js';

/*
 * How long one waits: for a command beside `node -e 0`, for the first answer of a server beside one written by hand,
 * both with the same documents; and what the server holds when nobody asks. Medians, in turns in the same run, on an
 * otherwise idle machine. Linux only.
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
const MAX_MIB = 65;
/** After its start a server still gets itself ready for a moment. */
const REST_MS = 1_000;

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
    const memory = Math.round(of('pssMib'));
    console.log(
      `${`${name}, first answer`.padEnd(24)} ${Math.round(of('ms'))} ms${name === own.name && floor ? judge(of('ms') / floor, MAX_RATIO) : ''}, ` +
        `${Math.round(of('cpuMs'))} ms of processor time, ${memory} MiB PSS` +
        (name === own.name ? ` (${MAX_MIB}: ${memory <= MAX_MIB ? 'met' : 'MISSED'})` : ''),
    );
  }
}

interface Start {
  ms: number;
  cpuMs: number;
  /** What the process holds of memory, shared pages by their share. */
  pssMib: number;
}

async function measureStart(server: Server): Promise<Start> {
  const { pid, startMs, stop } = await server.start();
  const { user, system } = cpuSeconds(pid);
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  const [, kib] = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))!;
  await stop();
  return { ms: startMs, cpuMs: (user + system) * 1000, pssMib: Number(kib) / 1024 };
}
