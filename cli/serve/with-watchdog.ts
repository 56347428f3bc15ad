import { startWatchdog } from '../../src/platform/processes/watchdog.js';
import type { Context } from '../shell/context.js';
import { isShare } from './serve-processes.js';
import { chooseLogFormat } from '../shell/settings.js';

/**
 * Does the work of a long-running command under the eyes of a watchdog: opening the store is part of it, since that can
 * wait for a lock too.
 */
export async function withWatchdog(context: Context, work: () => Promise<void>): Promise<void> {
  const { config } = context.settings();
  const stop = startWatchdog({
    patienceMs: config.watchdogMs,
    endWithParent: isShare(),
    format: chooseLogFormat(context.io, config),
  });
  try {
    await work();
  } finally {
    stop();
  }
}
