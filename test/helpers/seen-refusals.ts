import { appendFileSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Names the directory in which all processes of a run of the tests note what was refused. */
const DIR = 'BSVC_TEST_REFUSALS';

const noted = new Set<string>();

/** Notes that an operation refused a request with this code, if somebody gathers that. */
export function noteRefusal(operationId: string, code: string): void {
  const dir = process.env[DIR];
  const line = `${operationId} ${code}`;
  if (dir === undefined || noted.has(line)) return;
  noted.add(line);
  appendFileSync(join(dir, String(process.pid)), `${line}\n`);
}

/** From now on every process that is started gathers what is refused; returns what was, as `operationId CODE`. */
export function gatherRefusals(): () => Set<string> {
  const dir = (process.env[DIR] = mkdtempSync(join(tmpdir(), 'bsvc-refusals-')));
  return () => new Set(readdirSync(dir).flatMap((name) => readFileSync(join(dir, name), 'utf8').trim().split('\n')));
}
