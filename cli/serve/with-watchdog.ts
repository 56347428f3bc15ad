import { startWatchdog } from '../../src/platform/processes/watchdog.js';
import type { Context } from '../shell/context.js';
import { HANG_MS, isShare } from './serve-processes.js';
import { chooseLogFormat } from '../shell/settings.js';

/** Without a supervisor, a process that may recover is better than one that has exited. */
const LEFT_ALONE_MS = 10 * 60_000;

/**
 * True if this process is known to be restarted: the supervisor of several processes, systemd, or the platform
 * of a container, whose first process it is.
 */
function isSupervised(context: Context): boolean {
  if (isShare() || process.pid === 1) return true;
  // A shell inside a systemd session has the first of them too, but another process.
  const { INVOCATION_ID: ofUnit, SYSTEMD_EXEC_PID: started } = context.io.env;
  return ofUnit !== undefined && (started === undefined || started === String(process.pid));
}

/**
 * Does the work of a long-running command under the eyes of a watchdog: opening the store is part of it, since that can
 * wait for a lock too.
 */
export async function withWatchdog(context: Context, work: () => Promise<void>): Promise<void> {
  const { config } = context.settings();
  const patienceMs = config.watchdogMs ?? HANG_MS;
  const stop = startWatchdog({
    patienceMs: patienceMs === Infinity ? null : patienceMs,
    graceMs: config.watchdogMs !== null || isSupervised(context) ? 0 : LEFT_ALONE_MS,
    endWithParent: isShare(),
    format: chooseLogFormat(context.io, config),
  });
  try {
    await work();
  } finally {
    stop();
  }
}
