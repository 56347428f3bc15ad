import type { App } from '../../app.js';
import { forbidden, invalid, missing } from '../../errors.js';
import { cappedParameter, ok, parameter, route, type RouteList } from '../../http/routes/route.js';
import { findObjectId } from '../../platform/ids.js';
import { arrayOf, ID, MOMENT, object, OBJECT, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { parseDuration } from '../../config/setting-readers.js';
import { OPERATOR } from '../access/operator-access.js';
import type { ActingOperator } from '../access/require-operator.js';
import { listActs, presentAct } from '../audit/audit-log.js';
import { findProject } from '../projects/project-store.js';
import { OPERATOR_ACCOUNT_ROUTES } from './operator-routes.js';
import { OPERATOR_SESSION_ROUTES } from './session-routes.js';
import { VIEW_ROUTES } from './view-routes.js';

const ACTS_PAGE = 50;
const MAX_ACTS_PAGE = 1_000;

const ACT = object(
  {
    id: ID,
    at: MOMENT,
    actor: TEXT,
    action: TEXT,
    input: OBJECT,
    outcome: oneOf('started', 'done', 'failed'),
    code: orNull(TEXT),
    'requestId?': text({ description: 'Of an act by the HTTP API: as its answer and the access log have it.' }),
  },
  'AuditEntry',
);

export const ADMIN_ROUTES: RouteList = {
  prefix: '/api/admin',
  tag: 'Operators',
  rate: 'operator',
  about: 'Operators sign in and out, see who they are and what was done.',
  routes: [
    ...OPERATOR_SESSION_ROUTES,
    ...VIEW_ROUTES,
    ...OPERATOR_ACCOUNT_ROUTES,
    route('GET /api/admin/audit', {
      id: 'listActs',
      command: 'audit',
      summary: 'List audit entries, the newest first',
      description: 'Without `project` for operators who see all projects.',
      access: OPERATOR,
      query: {
        limit: cappedParameter('Number of entries', ACTS_PAGE, MAX_ACTS_PAGE),
        action: parameter('Only entries of this action, such as `project update`', TEXT),
        actor: parameter('Only entries of this actor, such as the address of an operator', text({ maxLength: 320 })),
        project: parameter('Only entries about the project with this id', text({ maxLength: 100 })),
        since: parameter('Only entries of the last so long: `30m`, `24h`, `7d`', TEXT),
        before: parameter('The `id` of the last entry of the page before', text({ maxLength: 100 })),
      },
      answers: ok(object({ items: arrayOf(ACT) }), 'Acts, the newest first'),
      refuses: { 400: ['INVALID_QUERY'], 403: ['ALL_PROJECTS_REQUIRED'], 404: ['PROJECT_NOT_FOUND'] },
      async handle({ app, operator, query: { limit, action, actor, project, since, before } }) {
        if (operator.projects && project === undefined) {
          throw forbidden(
            'ALL_PROJECTS_REQUIRED',
            'The audit log tells of all projects: it is for operators who see them all',
          );
        }
        const sinceMs = since === undefined ? undefined : app.clock.now() - readDuration('since', since);
        const about = project === undefined ? undefined : await namesOf(app, operator, project);
        const from = before === undefined ? undefined : readId('before', before);
        const acts = await listActs(app, { limit, action, actor, about, since: sinceMs, before: from });
        return { items: acts.map(presentAct) };
      },
    }),
  ],
};

/** Names of a project in entries: its id here, on the command line its name too. A deleted one is only an id. */
async function namesOf(app: App, { projects }: ActingOperator, project: string): Promise<string[]> {
  const id = findObjectId(project)?.toHexString();
  if (id === undefined || (projects && !projects.has(id))) {
    throw missing('PROJECT_NOT_FOUND', 'There is no project with this id');
  }
  const found = await findProject(app, id);
  return found ? [id, found.name] : [id];
}

function readId(name: string, value: string): NonNullable<ReturnType<typeof findObjectId>> {
  const id = findObjectId(value);
  if (!id) throw invalid('INVALID_QUERY', `${name} must be the id of an entry`);
  return id;
}

function readDuration(name: string, value: string): number {
  try {
    return parseDuration(value);
  } catch (error) {
    throw invalid('INVALID_QUERY', `${name} ${(error as Error).message}`);
  }
}
