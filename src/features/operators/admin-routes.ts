import type { App } from '../../app.js';
import { forbidden, invalid, missing } from '../../errors.js';
import {
  cappedParameter,
  ok,
  parameter,
  route,
  type RouteList,
  created,
  done,
  listOf,
  naming,
  wholeList,
} from '../../http/routes/route.js';
import { findObjectId, sha256Hex } from '../../platform/ids.js';
import { arrayOf, ID, MOMENT, object, OBJECT, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { parseDuration } from '../../config/setting-readers.js';
import { OPERATOR } from '../access/operator-access.js';
import { type ActingOperator, requireSeenProject } from '../access/require-operator.js';
import { listActs, presentAct } from '../audit/audit-log.js';
import { findProject } from '../projects/project-store.js';
import { OPERATOR_ACCOUNT_ROUTES } from './operator-routes.js';
import { OPERATOR_SESSION_ROUTES } from './session-routes.js';
import { requireOwnAccount } from './log-in-operator.js';
import { operatorStore, type Operator, type SavedView } from '../access/operator.js';

type Own = Pick<Operator, '_id'>;
const MAX_VIEWS = 200;
const ID_LENGTH = 24;

/** The saved views of an operator, of all collections, in the order in which they were saved first. */
async function listViews(app: Pick<App, 'db'>, { _id }: Own): Promise<SavedView[]> {
  const found = await operatorStore(app).findOne({ _id }, { projection: { views: 1 } });
  return found?.views ?? [];
}

/** Saves a view in place of the one of its name, or as a new one: then the oldest beyond 200 goes. */
export async function saveView(app: Pick<App, 'db'>, { _id }: Own, view: Omit<SavedView, 'id'>): Promise<SavedView> {
  const { projectId, collection, name } = view;
  const saved = { id: sha256Hex(JSON.stringify([projectId, collection, name])).slice(0, ID_LENGTH), ...view };
  const store = operatorStore(app);
  const { matchedCount } = await store.updateOne({ _id, 'views.id': saved.id }, { $set: { 'views.$': saved } });
  if (matchedCount === 0) {
    // Unless the same one was added since: of two at once, either may be the later.
    const push = { views: { $each: [saved], $slice: -MAX_VIEWS } };
    await store.updateOne({ _id, 'views.id': { $ne: saved.id } }, { $push: push });
  }
  return saved;
}

/** Removes a view; 404 VIEW_NOT_FOUND. */
async function removeView(app: Pick<App, 'db'>, { _id }: Own, id: string): Promise<void> {
  const { matchedCount } = await operatorStore(app).updateOne({ _id, 'views.id': id }, { $pull: { views: { id } } });
  if (matchedCount === 0) throw missing('VIEW_NOT_FOUND', 'The view does not exist');
}

const FIELDS = {
  projectId: ID,
  collection: text({ minLength: 1, maxLength: 100 }),
  name: text({ notBlank: true, oneLine: true, wellFormed: true, maxLength: 60 }),
  query: {
    ...text({ wellFormed: true, maxLength: 2_000 }),
    description: 'Query string of the console: filters and order.',
  },
};
const VIEW = object({ id: ID, ...FIELDS }, 'SavedView');
const errors = { 403: ['NOT_SIGNED_IN'] };

/** An operator's saved views of collections: private, and available in every browser. */
const VIEW_ROUTES = [
  route('GET /api/admin/me/views', {
    id: 'listOwnViews',
    summary: 'List your saved views',
    access: OPERATOR,
    answers: ok(listOf(VIEW), 'Views'),
    errors,
    async handle({ app, operator }) {
      return wholeList(await listViews(app, requireOwnAccount(operator).operator));
    },
  }),
  route('POST /api/admin/me/views', {
    id: 'saveOwnView',
    bodySize: 'small',
    summary: 'Save a view of a collection',
    description: 'Replaces your view of the same name. The newest 200 are kept.',
    access: OPERATOR,
    body: object(FIELDS, 'NewView'),
    example: {
      projectId: '66f0c0ffee0ddba11c0de001',
      collection: 'posts',
      name: 'Much read',
      query: 'views_gte=100&sort=-views',
    },
    answers: created(VIEW, 'View saved'),
    errors: { ...errors, 404: ['PROJECT_NOT_FOUND'] },
    async handle({ app, operator, body }) {
      const own = requireOwnAccount(operator).operator;
      await requireSeenProject(app, operator, body.projectId);
      return saveView(app, own, body);
    },
  }),
  route('DELETE /api/admin/me/views/:view', {
    id: 'removeOwnView',
    summary: 'Delete a saved view',
    access: OPERATOR,
    params: { view: naming('Id of the view', 'VIEW_NOT_FOUND') },
    answers: done('View removed'),
    errors,
    handle: ({ app, operator, params }) => removeView(app, requireOwnAccount(operator).operator, params.view),
  }),
];

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
    'requestId?': text({ description: 'For actions over HTTP: the request id of the response and the access log.' }),
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
      summary: 'List audit entries, newest first',
      description: 'Without `project`, needs access to all projects.',
      access: OPERATOR,
      query: {
        limit: cappedParameter('Number of entries', ACTS_PAGE, MAX_ACTS_PAGE),
        action: parameter('Only this action, such as `project update`', TEXT),
        actor: parameter('Only this actor, such as the address of an operator', text({ maxLength: 320 })),
        project: parameter('Only the project with this id', text({ maxLength: 100 })),
        since: parameter('Only this last period: `30m`, `24h`, `7d`', TEXT),
        before: parameter('The `id` of the last entry of the previous page', text({ maxLength: 100 })),
      },
      answers: ok(object({ items: arrayOf(ACT) }), 'Acts, the newest first'),
      errors: { 400: ['INVALID_QUERY'], 403: ['ALL_PROJECTS_REQUIRED'], 404: ['PROJECT_NOT_FOUND'] },
      async handle({ app, operator, query: { limit, action, actor, project, since, before } }) {
        if (operator.projects && project === undefined) {
          throw forbidden(
            'ALL_PROJECTS_REQUIRED',
            'The audit log of all projects needs an operator with access to all projects',
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
