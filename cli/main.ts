import { run } from './run.js';

// The process edge: the only place that reads the environment, listens to signals and ends the process.
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort('SIGTERM'));
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
  process.stdout.on('error', () => process.exit(exitCode));
  process.stdout.write('', () => process.stderr.write('', () => process.exit(exitCode)));
});
