import {
  jsonAnswer,
  MOMENT,
  object,
  oneOf,
  PUBLIC,
  TEXT,
  type Access,
  type GroupDescription,
} from '../../http/routes/route-description.js';

const HEALTH = object(
  {
    status: oneOf('ok', 'error'),
    timestamp: MOMENT,
    version: TEXT,
    dependencies: object({
      database: oneOf('connected', 'disconnected'),
      cache: oneOf('connected', 'embedded', 'disabled', 'disconnected'),
    }),
  },
  'Health',
);

/** As in routes.ts. */
export const HEALTH_ROUTES: GroupDescription = {
  prefix: '/api/health',
  tag: 'Service',
  about: 'How the service is, and what describes it.',
  routes: {
    'GET /': {
      id: 'getHealth',
      summary: 'State of the service and its dependencies',
      access: PUBLIC,
      answers: { 200: jsonAnswer('All well', HEALTH), 503: jsonAnswer('A dependency is away', HEALTH) },
    },
    'GET /ready': {
      id: 'getReadiness',
      summary: 'Whether requests should be sent here',
      access: PUBLIC,
      answers: {
        200: jsonAnswer('Ready', object({ status: { const: 'ok' } })),
        503: jsonAnswer(
          'The database is away, or the process is stopping',
          object({ status: oneOf('disconnected', 'stopping') }),
        ),
      },
    },
    'GET /live': {
      id: 'getLiveness',
      summary: 'Whether the process runs',
      access: PUBLIC,
      answers: { 200: jsonAnswer('It does', object({ status: { const: 'ok' } })) },
    },
  },
};

const ADMIN_TOKEN: Access = {
  note: 'The value of `BSVC_ADMIN_TOKEN`.',
  security: [
    [
      {
        name: 'adminToken',
        definition: { type: 'http', scheme: 'bearer', description: 'The value of the setting `BSVC_ADMIN_TOKEN`.' },
      },
    ],
  ],
  refuses: { 401: ['AUTH_REQUIRED', 'TOKEN_INVALID'] },
};

/** As in metrics-routes.ts. */
export const METRICS_ROUTES: GroupDescription = {
  prefix: '/metrics',
  tag: 'Service',
  routes: {
    'GET /': {
      id: 'getMetrics',
      summary: 'Measures of all processes, for Prometheus',
      access: ADMIN_TOKEN,
      answers: { 200: { description: 'Prometheus’ text format', content: { 'text/plain': TEXT } } },
      refuses: { 404: ['NOT_FOUND'] },
    },
  },
};
