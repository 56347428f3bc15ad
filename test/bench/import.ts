import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runBinary, runOrThrow } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { cpuSeconds, memoryMib } from './process-cost.js';

/*
 * Documents of 300 bytes brought in by `data import`, with two indexes, and out again by `data export`: processor time
 * and the most memory of its own that the command held, for a tenth of them too, so that one sees it grow or not. Linux
 * only.
 *
 *   npm run bench import                        1,000,000 documents
 *   npm run bench import -- --documents 100000
 */

const { values: options } = parseArgs({ options: { documents: { type: 'string', default: '1000000' } } });
const MAX_CPU_SECONDS = 60;
const LOOK_MS = 50;

console.log(`load ${loadavg()[0]!.toFixed(1)}; goal ${MAX_CPU_SECONDS} s of processor time for 1,000,000`);
const all = Number(options.documents);
for (const documents of [all / 10, all]) await measure(documents);

async function measure(documents: number): Promise<void> {
  const folder = await openTempDir();
  try {
    const env = { BSVC_DATA_DIR: join(folder.path, 'data'), BSVC_PROJECT: 'bench' };
    await runOrThrow(['project', 'create', 'bench'], env);
    await runOrThrow(['project', 'update', 'bench', '--limit', 'database=1000000000000'], env);
    const fields = ['title:String!', 'group:Number', 'views:Number=0'].flatMap((field) => ['--field', field]);
    await runOrThrow(['collection', 'add', 'posts', ...fields, '--index', 'group', '--index', 'views'], env);
    const [file, copy] = [join(folder.path, 'posts.ndjson'), join(folder.path, 'copy.ndjson')];
    await writeDocuments(file, documents);
    await report('import', documents, ['data', 'import', 'posts', file, '--json'], env);
    await report('export', documents, ['data', 'export', 'posts', '--out', copy], env);
    if ((await stat(copy)).size < (await stat(file)).size) throw new Error('the export lacks documents');
  } finally {
    await folder.remove();
  }
}

async function writeDocuments(file: string, documents: number): Promise<void> {
  const stream = createWriteStream(file);
  for (let views = 0; views < documents; views++) {
    const line = `${JSON.stringify({ title: 'x'.repeat(230), group: views % (documents / 50), views })}\n`;
    if (!stream.write(line)) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'finish');
}

async function report(what: string, documents: number, argv: string[], env: Record<string, string>): Promise<void> {
  let cpu = 0;
  let peak = 0;
  const begun = performance.now();
  const { code, stderr } = await runBinary(argv, {
    env,
    onStart: ({ pid }) => {
      const timer = setInterval(() => {
        try {
          const { user, system } = cpuSeconds(pid!);
          cpu = user + system;
          peak = Math.max(peak, memoryMib(pid!, 'RssAnon'));
        } catch {
          // It has ended.
          clearInterval(timer);
        }
      }, LOOK_MS);
    },
  });
  if (code !== 0) throw new Error(`${argv.join(' ')} ended with ${code}: ${stderr}`);
  const seconds = (performance.now() - begun) / 1000;
  const goal = documents === 1_000_000 ? ` (${cpu <= MAX_CPU_SECONDS ? 'met' : 'MISSED'})` : '';
  console.log(
    `${what} of ${documents}: ${cpu.toFixed(1)} s of processor time${goal}, ${seconds.toFixed(1)} s, ` +
      `at most ${peak.toFixed(0)} MiB of its own`,
  );
}
