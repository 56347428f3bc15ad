import { defaulted, optional } from './setting.js';
import { among, asIs, hangTime, memoryBudget, wait, wholeWithin } from './setting-readers.js';

/** Processes: what they work on at once, how long they wait, what they log. */
export const PROCESS_SETTINGS = {
  processes: defaulted('BSVC_PROCESSES', wholeWithin(1, 64), 1, 'processes of `bsvc serve` that share the port'),
  memoryBytes: defaulted(
    'BSVC_MEMORY',
    memoryBudget,
    256 * 1024 ** 2,
    'memory that a process gives to request bodies, large replies and subscriptions; the number of requests and subscriptions at once follows from it',
    { defaultText: '256mb' },
  ),
  drainMs: defaulted(
    'BSVC_DRAIN',
    wait,
    1_000,
    'how long a stopping process that has clients goes on serving while it says that it is not ready; longer than a load balancer needs to notice',
    { defaultText: '1s' },
  ),
  watchdogMs: optional(
    'BSVC_WATCHDOG',
    hangTime,
    'how long the main thread of `serve` or `worker` may hang before the process ends itself, to be restarted; `off` switches off',
    {
      defaultText: '30s under systemd, a container platform or `--processes`; else ten minutes later, after a log line',
    },
  ),
  hooksDir: optional(
    'BSVC_HOOKS_DIR',
    asIs,
    'folder with a folder of own code for each project, by its name; without it files stay where `bsvc hook add` found them',
  ),
  adminToken: optional('BSVC_ADMIN_TOKEN', asIs, 'bearer for the operators’ API from scripts', { secret: true }),
  logLevel: defaulted(
    'BSVC_LOG_LEVEL',
    among('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'least severe log line to write; `debug` also prints stacks of unexpected errors of commands',
  ),
  logFormat: optional('BSVC_LOG_FORMAT', among('json', 'text'), 'form of log lines', {
    defaultText: 'JSON off a terminal',
  }),
};
