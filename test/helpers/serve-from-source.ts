import { run } from '../../cli/run.js';
import type { Constants } from '../../src/config/config.js';

/*
 * The command line from source, with the constants that BSVC_TEST_CONSTANTS holds as JSON: for a test of a process of
 * its own that cannot wait for the real ones. `startService(…, { constants })` runs it.
 */
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort('SIGTERM'));
process.exitCode = await run(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  constants: JSON.parse(process.env.BSVC_TEST_CONSTANTS!) as Partial<Constants>,
  stop: stop.signal,
});
