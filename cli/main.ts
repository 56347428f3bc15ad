import { isatty } from 'node:tty';
import { run } from './run.js';

// The process edge: the only place that reads the environment, listens to signals and ends the process.
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort('SIGTERM'));
// The terminal was closed, or the connection to it was lost.
process.on('SIGHUP', () => stop.abort('SIGHUP'));
// What cannot be said to a closed terminal, or to a pipe that nobody reads, does not change how the process ends.
process.stderr.on('error', () => undefined);
process.on('SIGINT', () => {
  // Pressed twice means it. A SIGTERM before or after is no impatience: a shared terminal and a parent process may both
  // tell.
  if (stop.signal.aborted && stop.signal.reason === 'SIGINT') process.exit(130);
  stop.abort('SIGINT');
});

// Node 20 is supported here; the AWS SDK would say on stderr that it will not be for ever.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

void run(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  stop: stop.signal,
}).then((exitCode) => {
  // Ends although something may still hold the event loop, but not before a pipe has taken what was written.
  process.stdout.on('error', () => end(exitCode));
  process.stdout.write('', () => process.stderr.write('', () => end(exitCode)));
});

function end(exitCode: number): void {
  if (![process.stdin, process.stdout, process.stderr].some(({ isTTY, fd }) => isTTY && !isatty(fd))) {
    process.exit(exitCode);
  }
  // Node would abort, with a core dump, because a closed terminal cannot be reset.
  process.removeAllListeners('SIGHUP');
  process.kill(process.pid, 'SIGHUP');
}
