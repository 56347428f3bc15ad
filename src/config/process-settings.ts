import { defaulted, optional } from './setting.js';
import { among, asIs, hangTime, memoryBudget, wait, wholeWithin } from './setting-readers.js';

/** Processes: what they work on at once, how long they wait, what they log. */
export const PROCESS_SETTINGS = {
  processes: defaulted('BSVC_PROCESSES', wholeWithin(1, 64), 1, 'processes that `bsvc serve` starts'),
  memoryBytes: defaulted(
    'BSVC_MEMORY',
    memoryBudget,
    256 * 1024 ** 2,
    'memory of a process for request bodies, large responses and subscriptions; it also sets how many run at once',
    { defaultText: '256mb' },
  ),
  drainMs: defaulted(
    'BSVC_DRAIN',
    wait,
    1_000,
    'how long a stopping process still serves while /api/health/ready fails; longer than your load balancer’s check',
    { defaultText: '1s' },
  ),
  watchdogMs: optional(
    'BSVC_WATCHDOG',
    hangTime,
    'how long `serve` or `worker` may hang before the process exits, to be restarted; `off` disables it',
    {
      defaultText: '30s under systemd, a container platform or `--processes`; else ten minutes later, after a log line',
    },
  ),
  hooksDir: optional(
    'BSVC_HOOKS_DIR',
    asIs,
    'folder with a folder of own code for each project, by its name; without it files stay where `bsvc hook add` found them',
  ),
  adminToken: optional('BSVC_ADMIN_TOKEN', asIs, 'bearer token for the operators’ API and /metrics', { secret: true }),
  logLevel: defaulted(
    'BSVC_LOG_LEVEL',
    among('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'log level; `debug` also prints stack traces of unexpected errors of commands',
  ),
  logFormat: optional('BSVC_LOG_FORMAT', among('json', 'text'), 'format of log lines', {
    defaultText: 'JSON off a terminal',
  }),
};
