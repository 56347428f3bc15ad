import { isatty } from 'node:tty';
import { run } from './run.js';

/** How long the last output may take after a signal. */
const FLUSH_PATIENCE_MS = 1_000;
const FILE_PAUSE_MS = 50;

// The process edge: the only place that reads the environment, listens to signals and ends the process.
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort('SIGTERM'));
// The terminal was closed, or the connection to it was lost.
process.on('SIGHUP', () => stop.abort('SIGHUP'));
// A closed terminal or pipe does not change the exit code.
process.stderr.on('error', () => undefined);
process.on('SIGINT', () => {
  // Pressed twice means it. A SIGTERM before or after is no impatience: a shared terminal and a parent process may both
  // tell.
  if (stop.signal.aborted && stop.signal.reason === 'SIGINT') end(130);
  stop.abort('SIGINT');
});

// Node 20 is supported here; the AWS SDK would say on stderr that it will not be for ever.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

void run(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: currentDirectory(),
  stop: stop.signal,
}).then((exitCode) => {
  // Ends although something may still hold the event loop, but not before a pipe has taken what was written.
  process.stdout.on('error', () => end(exitCode));
  // A terminal or pipe that takes nothing more does not hold up a process that was asked to stop.
  const onStop = (): unknown => setTimeout(() => end(exitCode), FLUSH_PATIENCE_MS);
  if (stop.signal.aborted) onStop();
  else stop.signal.addEventListener('abort', onStop);
  process.stdout.write('', () => process.stderr.write('', () => end(exitCode)));
});

function end(exitCode: number, patience = 10): void {
  // Node would abort, with a core dump, because a closed terminal cannot be reset.
  if ([process.stdin, process.stdout, process.stderr].some(({ isTTY, fd }) => isTTY && !isatty(fd))) endBy('SIGHUP');
  const awaitsFile = process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
  if (!stop.signal.aborted || !awaitsFile) process.exit(exitCode);
  // At its exit Node would wait for ever for a pipe without a reader or a disk that does not respond.
  if (patience === 0) endBy('SIGINT');
  setTimeout(end, FILE_PAUSE_MS, exitCode, patience - 1);
}

function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Node throws where it has been removed. */
function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    console.error('bsvc: The current directory does not exist any more. Change to another one.');
    process.exit(1);
  }
}
