import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openTempDir } from '../helpers/temp-dir.js';
import { type Case, COMMON, OWN } from './http-cases.js';
import type { Seen, Shots } from './http-client.js';
import { koaConstant, OWN_NAME, type Server, service, writtenByHand } from './http-servers.js';
import { cpuSeconds, memoryMib } from './process-cost.js';

/*
 * The server as users run it, over HTTP, beside a floor and a server written by hand, in turns in the same run. Each
 * case starts its server anew: the first two seconds tell of a start, what follows of the steady state. Processor time
 * is the server's own, user and system, as the kernel counts it. Compare ratios, not machines. Linux only.
 *
 *   npm run bench                        every case, 10,000 documents, 32 connections, three rounds
 *   npm run bench -- --documents 200000 --connections 32,128,512 --seconds 4 --rounds 5 --only get
 */

const { values: options } = parseArgs({
  options: {
    documents: { type: 'string', default: '10000' },
    connections: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string' },
    // For `npm run measure`: the rows as JSON.
    out: { type: 'string' },
  },
});
const FIRST_SECONDS = 2;
const CLIENTS = 2;
const BY_HAND = 'by hand';
/** The p99 as a multiple of the p50, with up to 32 connections and with more. */
const MAX_TAIL = 4;
const MAX_CROWDED_TAIL = 8;
const MAX_FIRST = 1.5;

/** Medians over the rounds. */
interface Row {
  case: string;
  server: string;
  connections: number;
  /** Processor time of a request in microseconds, in the steady state and in the first seconds. */
  cpuMicros: number;
  firstMicros: number;
  requestsPerSecond: number;
  p50: number;
  p99: number;
  memoryMib: number;
  failed: number;
}
type Measured = Omit<Row, 'case' | 'server' | 'connections'>;

const clients = Array.from({ length: CLIENTS }, () => fork(join(import.meta.dirname, 'http-client.ts')));
const folder = await openTempDir();
try {
  const rows = await measureAll(folder.path);
  report(rows);
  if (options.out) writeFileSync(options.out, JSON.stringify(rows));
} finally {
  for (const client of clients) client.kill();
  await folder.remove();
}

async function measureAll(path: string): Promise<Row[]> {
  const documents = Number(options.documents);
  const own = await service(join(path, OWN_NAME), documents);
  const byHand = writtenByHand(path, documents);
  const servers = [koaConstant(), ...(byHand ? [byHand] : []), own];
  const turns = [
    ...COMMON.flatMap((one) => servers.map((server) => ({ one, server }))),
    ...OWN.map((one) => ({ one, server: own })),
  ].filter(({ one }) => (options.only ?? '').split(',').some((part) => one.name.includes(part)));
  const rows: Row[] = [];
  for (const connections of options.connections.split(',').map(Number)) {
    const measured = new Map<(typeof turns)[number], Measured[]>(turns.map((turn) => [turn, []]));
    for (let round = 0; round < Number(options.rounds); round++)
      for (const turn of turns) measured.get(turn)!.push(await measure(turn.server, turn.one, connections));
    for (const [{ one, server }, all] of measured)
      rows.push({
        case: one.name,
        server: server.name,
        connections: Math.min(connections, one.mostConnections ?? Infinity),
        ...medians(all),
      });
  }
  return rows;
}

async function measure(server: Server, one: Case, connections: number): Promise<Measured> {
  const running = await server.start();
  try {
    const each = Math.min(connections, one.mostConnections ?? Infinity) / CLIENTS;
    const shots = { url: running.url, requests: one.requests(running.world), connections: each };
    const first = await shoot(running.pid, { ...shots, seconds: FIRST_SECONDS });
    const steady = await shoot(running.pid, { ...shots, seconds: Number(options.seconds) });
    return {
      cpuMicros: steady.micros,
      firstMicros: first.micros,
      requestsPerSecond: steady.requests / Number(options.seconds),
      p50: steady.p50,
      p99: steady.p99,
      memoryMib: memoryMib(running.pid),
      failed: first.failed + steady.failed,
    };
  } finally {
    await running.stop();
  }
}

async function shoot(pid: number, shots: Shots): Promise<Seen & { micros: number }> {
  const before = cpuSeconds(pid);
  const seen = await Promise.all(clients.map((client) => ask(client, shots)));
  const after = cpuSeconds(pid);
  const requests = seen.reduce((sum, one) => sum + one.requests, 0);
  return {
    requests,
    micros: ((after.user + after.system - before.user - before.system) / requests) * 1e6,
    failed: seen.reduce((sum, one) => sum + one.failed, 0),
    p50: seen.reduce((sum, one) => sum + one.p50, 0) / CLIENTS,
    p99: Math.max(...seen.map((one) => one.p99)),
  };
}

async function ask(client: ChildProcess, shots: Shots): Promise<Seen> {
  client.send(shots);
  const [seen] = (await once(client, 'message')) as [Seen];
  return seen;
}

function medians(all: readonly Measured[]): Measured {
  const median = (name: keyof Measured): number =>
    all.map((one) => one[name]).sort((a, b) => a - b)[Math.floor(all.length / 2)]!;
  return {
    cpuMicros: Math.round(median('cpuMicros')),
    firstMicros: Math.round(median('firstMicros')),
    requestsPerSecond: Math.round(median('requestsPerSecond')),
    p50: median('p50'),
    p99: median('p99'),
    memoryMib: Math.round(median('memoryMib')),
    failed: Math.max(...all.map(({ failed }) => failed)),
  };
}

function report(rows: readonly Row[]): void {
  console.log(`${options.documents} documents, load ${loadavg()[0]!.toFixed(1)}; x by hand, goals in parentheses`);
  for (const row of rows) console.log(describe(row, rows));
}

function describe(row: Row, rows: readonly Row[]): string {
  const goal = row.server === OWN_NAME ? COMMON.find(({ name }) => name === row.case)?.goal : undefined;
  const byHand = find(rows, row, BY_HAND);
  const first = row.firstMicros / row.cpuMicros;
  const judge = (value: number, most: number | undefined): string =>
    `${value.toFixed(2)}x${most === undefined || row.server !== OWN_NAME ? '' : ` (${most}: ${value <= most ? 'met' : 'MISSED'})`}`;
  return [
    row.case.padEnd(25),
    row.server.padEnd(13),
    `c=${row.connections}`.padEnd(6),
    `${row.cpuMicros} us`.padStart(8),
    (byHand && row.server !== BY_HAND ? judge(row.cpuMicros / byHand.cpuMicros, goal) : '').padEnd(22),
    `${row.requestsPerSecond}/s`.padStart(8),
    `p50 ${row.p50.toFixed(1)} ms p99 ${row.p99.toFixed(1)} ms ${judge(row.p99 / row.p50, row.connections > 32 ? MAX_CROWDED_TAIL : MAX_TAIL)}`.padEnd(
      46,
    ),
    `first ${judge(first, MAX_FIRST)}`.padEnd(26),
    `${row.memoryMib} MiB`,
    row.failed ? `${row.failed} FAILED` : '',
  ]
    .join(' ')
    .trimEnd();
}

function find(rows: readonly Row[], { case: name, connections }: Row, server: string): Row | undefined {
  return rows.find((one) => one.case === name && one.connections === connections && one.server === server);
}
