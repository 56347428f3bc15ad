import { defaulted, optional } from './setting.js';
import { among, asIs, hangTime, patience, trueOrFalse, wait, wholeWithin } from './setting-readers.js';

/** Processes: what they work on at once, how long they wait, what they log. */
export const PROCESS_SETTINGS = {
  processes: defaulted('BSVC_PROCESSES', wholeWithin(1, 64), 1, 'processes of `bsvc serve` that share the port'),
  headersTimeoutMs: defaulted('BSVC_HEADERS_TIMEOUT', patience, 10_000, 'how long a client may take to send headers', {
    defaultText: '10s',
  }),
  requestTimeoutMs: defaulted(
    'BSVC_REQUEST_TIMEOUT',
    patience,
    300_000,
    'how long a client may take to send a whole request; ten megabytes in five minutes are 300 kbit/s',
    { defaultText: '5m' },
  ),
  silenceTimeoutMs: defaulted(
    'BSVC_SILENCE_TIMEOUT',
    patience,
    60_000,
    'how long a client may send and take nothing in the middle of a request',
    { defaultText: '60s' },
  ),
  stallTimeoutMs: defaulted(
    'BSVC_STALL_TIMEOUT',
    patience,
    10_000,
    'how long a client may take nothing of a reply that waits for it',
    { defaultText: '10s' },
  ),
  keepAliveTimeoutMs: defaulted(
    'BSVC_KEEP_ALIVE_TIMEOUT',
    patience,
    65_000,
    'how long an unused connection stays open; longer than a proxy in front keeps its own',
    { defaultText: '65s' },
  ),
  drainMs: defaulted(
    'BSVC_DRAIN',
    wait,
    1_000,
    'how long a stopping process that has clients goes on serving while it says that it is not ready; longer than a load balancer needs to notice',
    { defaultText: '1s' },
  ),
  shutdownGraceMs: defaulted(
    'BSVC_SHUTDOWN_GRACE',
    wait,
    10_000,
    'how long a stopping process waits for what is under way',
    { defaultText: '10s' },
  ),
  watchdogMs: defaulted(
    'BSVC_WATCHDOG',
    hangTime,
    30_000,
    'how long the main thread of `serve` or `worker` may hang before the process ends itself, to be restarted; where nobody starts it again it logs where it hangs, and ends ten minutes later; `off` switches off',
    { defaultText: '30s' },
  ),
  supervised: defaulted(
    'BSVC_SUPERVISED',
    trueOrFalse,
    false,
    'somebody starts the process again when it ends; known by itself of systemd, of `serve --processes` and of the first process of a container',
  ),
  adminToken: optional('BSVC_ADMIN_TOKEN', asIs, 'bearer for the operators’ API from scripts', { secret: true }),
  logLevel: defaulted(
    'BSVC_LOG_LEVEL',
    among('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'least severe log line to write',
  ),
  logFormat: optional('BSVC_LOG_FORMAT', among('json', 'text'), 'form of log lines', {
    defaultText: 'JSON off a terminal',
  }),
  verbose: defaulted('BSVC_DEBUG', trueOrFalse, false, 'print stacks of unexpected errors on the command line'),
};
