import { spawnSync } from 'node:child_process';
import { BINARY } from '../helpers/run-binary.js';

// How long a person waits for the command line: the median of many starts, on an otherwise idle machine. The goal for
// --help is 250 ms.
const RUNS = 15;

for (const words of [['--help'], ['project', 'create', '--help'], ['completion', 'bash']]) {
  const times = Array.from({ length: RUNS }, () => {
    const begun = process.hrtime.bigint();
    spawnSync(process.execPath, [BINARY, ...words], { stdio: 'ignore' });
    return Number(process.hrtime.bigint() - begun) / 1e6;
  }).sort((a, b) => a - b);
  const [least, median, most] = [times[0]!, times[Math.floor(RUNS / 2)]!, times.at(-1)!].map(Math.round);
  console.log(`bsvc ${words.join(' ')}: median ${median} ms (${least} to ${most})`);
}
