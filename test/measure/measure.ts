import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { COMMON } from '../bench/http-cases.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { LINE_BUDGET } from './line-budget.js';
import { countParts, sumParts } from './lines.js';
import { countRan } from './requests.js';
import { countSurface } from './surface.js';

/*
 *   npm run measure             sizes, what six requests run, and processor time beside a server written by hand
 *   npm run measure -- sizes    what takes no time, as CI prints it
 *
 * The times are ratios of one run; on a busy machine compare nothing else.
 */

const rows: [what: string, ...figures: string[]][] = [];
const write = (number: number): string => number.toLocaleString('en');

writeSizes();
if (process.argv[2] !== 'sizes') {
  await writeRequests();
  await writeTimes();
}
print();

function writeSizes(): void {
  const parts = countParts();
  rows.push(['part, by hand', 'lines', 'budget', 'files']);
  for (const [name, { lines, files }] of parts) {
    rows.push([name, write(lines), write(LINE_BUDGET[name] ?? 0), write(files)]);
  }
  for (const begins of ['src', 'cli', 'test']) {
    const { lines, files } = sumParts(parts, begins);
    rows.push([`all of ${begins}`, write(lines), '', write(files)]);
  }
  rows.push(['']);
  for (const [what, count] of countSurface()) rows.push([what, write(count)]);
}

async function writeRequests(): Promise<void> {
  rows.push([''], ['request', 'files', 'functions']);
  for (const { request, files, functions } of await countRan()) {
    rows.push([request, write(files), write(functions)]);
  }
}

async function writeTimes(): Promise<void> {
  const folder = await openTempDir();
  try {
    const out = join(folder.path, 'http.json');
    // The five that every server answers; its own table is not wanted here.
    const only = ['--only', COMMON.map(({ name }) => name).join(',')];
    const { status } = spawnSync('npm', ['run', '--silent', 'bench', '--', ...only, '--out', out], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (status !== 0) throw new Error(`the benchmark ended with ${status}`);
    const measured = JSON.parse(readFileSync(out, 'utf8')) as { case: string; server: string; cpuMicros: number }[];
    rows.push([''], [`operation, load ${loadavg()[0]!.toFixed(1)}`, 'processor time', 'by hand', 'ratio']);
    for (const { case: name, server, cpuMicros } of measured) {
      if (server !== 'bsvc' || !COMMON.some((one) => one.name === name)) continue;
      const byHand = measured.find((one) => one.case === name && one.server === 'by hand')?.cpuMicros;
      const ratio = byHand === undefined ? '' : (cpuMicros / byHand).toFixed(2);
      rows.push([name, `${cpuMicros} µs`, byHand === undefined ? 'not installed' : `${byHand} µs`, ratio]);
    }
  } finally {
    await folder.remove();
  }
}

function print(): void {
  const widths = [0, 1, 2, 3].map((at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  for (const [what, ...figures] of rows) {
    const cells = figures.map((figure, at) => figure.padStart(widths[at + 1]!));
    console.log([what.padEnd(widths[0]!), ...cells].join('  ').trimEnd());
  }
}
