import {
  cappedParameter,
  created,
  listOf,
  naming,
  ok,
  PAGE_PARAMETER,
  pageOf,
  route,
  type RouteList,
  wholeList,
} from '../../http/routes/route.js';
import { ANYTHING, ID, MOMENT, object, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { SECRET_KEY } from '../access/key-access.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { addSchedule, presentSchedule, removeSchedule, runSchedule } from './change-schedules.js';
import { BAD_TARGET, CALLS, OWN_FILE, presentCalls, SECRET, TARGET_FIELDS, TRIED } from './hook-routes.js';
import { listSchedules, MISSED, requireSchedule } from './schedule.js';
import { listPlannedCalls, MAX_DAYS_AHEAD, planCall, presentCall, removeCall, requireCall } from './single-calls.js';

const SCHEDULE_FIELDS = {
  ...{ id: ID, name: TEXT, cron: TEXT, timeZone: TEXT, missed: oneOf(...MISSED), ...TARGET_FIELDS },
  nextAt: orNull(MOMENT),
  lastAt: orNull(MOMENT),
  lastError: orNull(TEXT),
  createdAt: MOMENT,
};
const SCHEDULE = object(SCHEDULE_FIELDS, 'Schedule');

const NAME = naming('Name of the schedule', 'SCHEDULE_NOT_FOUND');

/** Own code that runs at certain times, for operators (hooks.md 3). */
export const SCHEDULE_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/schedules',
  tag: 'Project own code',
  rate: 'operator',
  params: { name: NAME },
  routes: [
    route('GET /api/projects/:projectId/schedules', {
      id: 'listSchedules',
      command: 'schedule list',
      summary: 'List schedules',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(SCHEDULE), 'Schedules'),
      async handle({ app, project, operator }) {
        const isOwner = operator.role === 'owner';
        const schedules = await listSchedules(app, project._id);
        return wholeList(schedules.map((each) => presentSchedule(app, each, isOwner)));
      },
    }),
    route('POST /api/projects/:projectId/schedules', {
      id: 'addSchedule',
      summary: 'Add a schedule',
      access: projectOwner('schedule add', { asksPassword: true }),
      body: object(
        {
          name: text({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$' }),
          cron: text({ maxLength: 100, description: 'Minute, hour, day, month, weekday.', examples: ['0 3 * * *'] }),
          'timeZone?': text({ maxLength: 64, description: 'UTC unless given.', examples: ['Europe/Berlin'] }),
          'missed?': oneOf(...MISSED),
          'url?': TEXT,
          'run?': OWN_FILE,
        },
        'NewSchedule',
      ),
      example: { name: 'nightly', cron: '0 3 * * *', timeZone: 'Europe/Berlin', url: 'https://shop.example/nightly' },
      answers: created(
        object({ ...SCHEDULE_FIELDS, secret: SECRET }, 'CreatedSchedule'),
        'Schedule added. The secret is shown only now.',
      ),
      errors: {
        400: ['INVALID_SCHEDULE', ...BAD_TARGET],
        403: ['SCHEDULE_LIMIT'],
        409: ['SCHEDULE_EXISTS'],
      },
      async handle({ app, project, body }) {
        const { schedule, secret } = await addSchedule(app, project, body);
        return { ...presentSchedule(app, schedule), secret };
      },
    }),
    route('DELETE /api/projects/:projectId/schedules/:name', {
      id: 'removeSchedule',
      summary: 'Remove a schedule with its log',
      access: projectOwner('schedule remove'),
      answers: ok(object({ id: ID }), 'Schedule removed'),
      async handle({ app, project, params }) {
        return { id: (await removeSchedule(app, project, params.name))._id.toHexString() };
      },
    }),
    route('POST /api/projects/:projectId/schedules/:name/run', {
      id: 'runSchedule',
      summary: 'Run a schedule now, beside its times',
      access: projectOwner('hook test'),
      answers: ok(TRIED, 'Run'),
      handle: ({ app, project, params }) => runSchedule(app, project, params.name),
    }),
    route('GET /api/projects/:projectId/schedules/:name/calls', {
      id: 'listScheduleCalls',
      summary: 'List the last calls of a schedule',
      access: PROJECT_OPERATOR,
      answers: ok(CALLS, 'Calls'),
      handle: async ({ app, project, params }) =>
        presentCalls(app, project, (await requireSchedule(app, project, params.name))._id),
    }),
  ],
};

const CALL_FIELDS = {
  ...{ id: ID, key: orNull(TEXT), at: MOMENT, ...TARGET_FIELDS },
  state: { ...oneOf('waiting', 'running'), description: '`running`: it is called, or tried again after a failure.' },
  lastError: orNull(TEXT),
  createdAt: MOMENT,
};
const CALL = object(CALL_FIELDS, 'PlannedCall');

/** Single calls of own code, for the project's server (hooks.md 3). */
export const CALL_ROUTES: RouteList = {
  prefix: '/api/schedules',
  tag: 'Own code',
  rate: 'plain',
  params: { call: naming('Key or id of the call', 'SCHEDULE_NOT_FOUND') },
  routes: [
    route('POST /api/schedules', {
      id: 'planCall',
      summary: 'Plan a call',
      description: `At most ${MAX_DAYS_AHEAD} days ahead. With a \`key\` it takes the place of the call of that key.`,
      access: SECRET_KEY,
      body: object(
        {
          at: MOMENT,
          'url?': TEXT,
          'run?': OWN_FILE,
          'body?': ANYTHING,
          'key?': text({ minLength: 1, maxLength: 200 }),
        },
        'NewPlannedCall',
      ),
      example: {
        at: '2026-03-02T09:00:00.000Z',
        url: 'https://shop.example/remind',
        body: { order: 7 },
        key: 'remind-7',
      },
      answers: created(object({ ...CALL_FIELDS, secret: SECRET }, 'CreatedCall'), 'Call planned'),
      errors: {
        400: ['INVALID_SCHEDULE', ...BAD_TARGET],
        403: ['SCHEDULE_LIMIT', 'QUOTA_EXCEEDED'],
      },
      async handle({ app, project, body }) {
        const { call, secret } = await planCall(app, project, body);
        return { ...presentCall(app, call), secret };
      },
    }),
    route('GET /api/schedules', {
      id: 'listCalls',
      summary: 'List planned calls, those that are due first before others',
      access: SECRET_KEY,
      query: { page: PAGE_PARAMETER, limit: cappedParameter('Calls of a page', 50, 200) },
      answers: ok(pageOf(CALL), 'Calls'),
      errors: { 400: ['INVALID_QUERY'] },
      async handle({ app, project, query: { page, limit } }) {
        const { items, total } = await listPlannedCalls(app, project, { page, limit });
        return { items: items.map((each) => presentCall(app, each)), total, page, limit };
      },
    }),
    route('GET /api/schedules/:call', {
      id: 'getCall',
      summary: 'Get a planned call',
      access: SECRET_KEY,
      answers: ok(CALL, 'Call'),
      handle: async ({ app, project, params }) => presentCall(app, await requireCall(app, project, params.call)),
    }),
    route('DELETE /api/schedules/:call', {
      id: 'removeCall',
      summary: 'Take back a planned call',
      access: SECRET_KEY,
      answers: ok(CALL, 'Call taken back'),
      handle: async ({ app, project, params }) => presentCall(app, await removeCall(app, project, params.call)),
    }),
  ],
};
