import {
  accepted,
  listOf,
  naming,
  ok,
  flagParameter,
  parameter,
  route,
  type RouteList,
  wholeList,
  wholeNumberParameter,
} from '../../http/routes/route.js';
import { presentSettings } from '../../config/config.js';
import { JOB_STATES, listJobs, presentJob, retryJob } from '../../platform/jobs/manage-jobs.js';
import {
  anyOf,
  arrayOf,
  FLAG,
  ID,
  MOMENT,
  number,
  object,
  oneOf,
  orNull,
  text,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { ofAllProjects, OPERATOR, owner } from '../access/operator-access.js';
import { FIGURES, type SeriesName } from './rings.js';
import { RANGES, readFigures } from './series.js';
import { VERSION } from '../../package.js';
import { findKeptRequests, recentRequests } from './requests/recent-requests.js';
import { readStatus } from './status.js';

const MAX_JOBS = 500;
const NUMBER = number();

const REFUSES = { 403: ['ALL_PROJECTS_REQUIRED'] };

const MAX_REQUESTS = 500;
const STATUSES = ['2', '3', '4', '5', '400', '401', '403', '404', '409', '413', '429', '500', '503'] as const;
const REQUEST = object(
  {
    at: MOMENT,
    requestId: TEXT,
    method: TEXT,
    route: orNull(TEXT),
    path: TEXT,
    status: WHOLE,
    ms: number(),
    project: orNull(TEXT),
    by: oneOf('publishable key', 'secret key', 'operator', 'nobody'),
    user: orNull(TEXT),
    network: TEXT,
  },
  'SeenRequest',
);
const SETTING = object(
  { name: TEXT, env: TEXT, value: orNull(anyOf(TEXT, number(), FLAG)), source: TEXT, text: TEXT },
  'Setting',
);

const VALUES = object(
  Object.fromEntries(FIGURES.map((name) => [name, arrayOf(orNull(NUMBER))])) as Record<
    SeriesName,
    ReturnType<typeof arrayOf<number | null>>
  >,
  'SeriesValues',
);

const BYTES = NUMBER;
const STATUS = object(
  {
    version: TEXT,
    store: oneOf('embedded', 'mongodb'),
    storedBytes: orNull(BYTES),
    uptimeSeconds: WHOLE,
    processes: WHOLE,
    memoryBytes: BYTES,
    disk: orNull(object({ freeBytes: BYTES, totalBytes: BYTES })),
    jobs: object({ queued: WHOLE, running: WHOLE, dead: WHOLE }),
    backup: orNull(object({ at: orNull(MOMENT), isLate: FLAG })),
    problems: arrayOf(
      object({
        kind: oneOf('webhook', 'jobs', 'disk', 'backup'),
        project: orNull(ID),
        id: orNull(TEXT),
        text: TEXT,
        since: orNull(MOMENT),
      }),
    ),
  },
  'ServiceStatus',
);

const JOB = object(
  {
    id: ID,
    name: TEXT,
    state: oneOf(...JOB_STATES),
    attempts: WHOLE,
    runAt: MOMENT,
    error: orNull(TEXT),
    createdAt: MOMENT,
    updatedAt: MOMENT,
  },
  'Job',
);

const numberOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));

/** For the people who run the service: how it is and what it does. */
export const SERVICE_ROUTES: readonly RouteList[] = [
  {
    prefix: '/api/admin/series',
    tag: 'Operators',
    rate: 'operator',
    routes: [
      route('GET /api/admin/series', {
        id: 'getSeries',
        summary: 'Get metrics of all processes over time',
        description:
          'Rates are per second. One hour has steps of ten seconds and 24 hours of a minute, since the service started. 30 days have stored steps of ten minutes. `null` means no data.',
        access: ofAllProjects(OPERATOR),
        query: { range: parameter('Period', { ...oneOf(...RANGES), default: '1h' as const }) },
        answers: ok(object({ version: TEXT, from: MOMENT, stepMs: WHOLE, series: VALUES }), 'Figures'),
        errors: { 400: ['INVALID_QUERY'], ...REFUSES },
        async handle({ app, query: { range } }) {
          const { fromMs, stepMs, values } = await readFigures(app, range);
          return { version: VERSION, from: new Date(fromMs).toISOString(), stepMs, series: values };
        },
      }),
    ],
  },
  {
    prefix: '/api/admin/status',
    tag: 'Operators',
    rate: 'operator',
    routes: [
      route('GET /api/admin/status', {
        id: 'getStatus',
        command: 'doctor',
        summary: 'Get the state of all processes',
        access: ofAllProjects(OPERATOR),
        answers: ok(STATUS, 'Status'),
        errors: { 400: ['QUERY_TIMEOUT'], ...REFUSES },
        handle: ({ app }) => readStatus(app),
      }),
    ],
  },
  {
    prefix: '/api/admin/settings',
    tag: 'Operators',
    rate: 'operator',
    routes: [
      route('GET /api/admin/settings', {
        id: 'listSettings',
        command: 'settings',
        summary: 'List settings of this process with their source, secrets masked',
        access: ofAllProjects(OPERATOR),
        answers: ok(listOf(SETTING), 'Settings'),
        errors: REFUSES,
        handle: ({ app }) => wholeList(presentSettings(app.config)),
      }),
    ],
  },
  {
    prefix: '/api/admin/requests',
    tag: 'Operators',
    rate: 'operator',
    routes: [
      route('GET /api/admin/requests', {
        id: 'listRequests',
        summary: 'List recent requests, newest first',
        description:
          'The last 10,000 of this process, without queries and bodies, with the network of each address. With `kept`, requests of all processes that returned 5xx or took a second, of the last seven days, at most 10,000, stored every ten seconds.',
        access: ofAllProjects(OPERATOR),
        query: {
          project: parameter('Only the project with this id', text({ maxLength: 100 })),
          q: parameter(
            'Only with this text in path, route, request id, user or network, case-insensitive',
            text({ maxLength: 200 }),
          ),
          status: parameter('Only this status, or `2` to `5` for a class', oneOf(...STATUSES)),
          minMs: parameter(
            'Only requests that took at least this many milliseconds',
            oneOf('100', '300', '1000', '3000'),
          ),
          kept: flagParameter('Failed and slow requests of the last seven days'),
          limit: wholeNumberParameter('Number of requests', 100, { max: MAX_REQUESTS }),
        },
        answers: ok(listOf(REQUEST), 'Requests'),
        errors: { 400: ['INVALID_QUERY'], ...REFUSES },
        async handle({ app, query: { status, minMs, kept, ...query } }) {
          const filter = { ...query, status: numberOf(status), minMs: numberOf(minMs) };
          const found = kept ? await findKeptRequests(app, filter) : recentRequests(app).find(filter);
          return wholeList(found.map(({ atMs, ...request }) => ({ at: new Date(atMs).toISOString(), ...request })));
        },
      }),
    ],
  },
  {
    prefix: '/api/admin/jobs',
    tag: 'Operators',
    rate: 'operator',
    routes: [
      route('GET /api/admin/jobs', {
        id: 'listJobs',
        command: 'jobs',
        summary: 'List pending background jobs by due time',
        access: ofAllProjects(OPERATOR),
        query: {
          state: parameter('Only this state; `done` jobs are listed newest first', oneOf(...JOB_STATES)),
          name: parameter('Only this kind, such as `mail.deliver`', text({ maxLength: 100 })),
          limit: wholeNumberParameter('Number of jobs', 100, { max: MAX_JOBS }),
        },
        answers: ok(listOf(JOB), 'Jobs'),
        errors: { 400: ['INVALID_QUERY'], ...REFUSES },
        async handle({ app, query }) {
          return wholeList((await listJobs(app, query)).map(presentJob).map(withoutPayload));
        },
      }),
      route('POST /api/admin/jobs/:jobId/retry', {
        id: 'retryJob',
        summary: 'Run a failed or waiting job now',
        access: ofAllProjects(owner('jobs')),
        params: { jobId: naming('Id of the job', 'JOB_NOT_FOUND') },
        answers: accepted(JOB, 'The job is due'),
        errors: REFUSES,
        async handle({ app, params }) {
          return withoutPayload(presentJob(await retryJob(app, params.jobId)));
        },
      }),
    ],
  },
];

/** It may hold what is a project's own business. */
function withoutPayload({ payload: _payload, ...shown }: ReturnType<typeof presentJob>) {
  return shown;
}
