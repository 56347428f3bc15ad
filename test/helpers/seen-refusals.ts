import { appendFileSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Names the directory in which all processes of a run of the tests, or of several, note what was refused. */
const DIR = 'BSVC_TEST_REFUSALS';
/** Begins the names of the files there that hold which tests ran. */
const RAN = 'ran-';

const noted = new Set<string>();

/** Notes that an operation refused a request with this code, if somebody gathers that. */
export function noteRefusal(operationId: string, code: string): void {
  const dir = process.env[DIR];
  const line = `${operationId} ${code}`;
  if (dir === undefined || noted.has(line)) return;
  noted.add(line);
  appendFileSync(join(dir, String(process.pid)), `${line}\n`);
}

interface Gathered {
  /** As `operationId CODE`. */
  met: Set<string>;
  /** Paths of the tests that ran. */
  ran: Set<string>;
}

/**
 * From now on every process that is started gathers what is refused. Returns what was, given the tests that this run
 * had, with that of the runs before it in the same directory.
 */
export function gatherRefusals(): (ran: readonly string[]) => Gathered {
  const dir = (process.env[DIR] ??= mkdtempSync(join(tmpdir(), 'bsvc-refusals-')));
  return (ran) => {
    writeFileSync(join(dir, `${RAN}${process.pid}`), ran.join('\n'));
    const linesOf = (isRan: boolean): Set<string> =>
      new Set(
        readdirSync(dir)
          .filter((name) => name.startsWith(RAN) === isRan)
          .flatMap((name) => readFileSync(join(dir, name), 'utf8').trim().split('\n')),
      );
    return { met: linesOf(false), ran: linesOf(true) };
  };
}
