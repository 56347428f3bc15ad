import type { App } from '../../app.js';
import { conflict, missing } from '../../errors.js';
import { created, done, listOf, naming, ok, route, type Route, wholeList } from '../../http/routes/route.js';
import { arrayOf, changes, ID, MOMENT, object, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { ofAllProjects, OPERATOR, owner } from '../access/operator-access.js';
import {
  OPERATOR_ROLES,
  type Operator,
  forgetOperators,
  operatorStore,
  type OperatorRole,
} from '../access/operator.js';
import type { ActingOperator } from '../access/require-operator.js';
import { requireProject } from '../projects/project-store.js';
import type { Project } from '../projects/project.js';
import { EMAIL, NEW_PASSWORD } from '../users/accounts/present-user.js';
import {
  addOperator,
  listOperators,
  presentOperator,
  removeOperator,
  requireOperatorNamed,
} from './manage-operators.js';
import { setOperatorPassword } from './operator-sessions.js';

const ROLE = oneOf(...OPERATOR_ROLES);
const OPERATOR_SCHEMA = object(
  { id: ID, email: TEXT, role: ROLE, projects: orNull(arrayOf(ID)), createdAt: MOMENT },
  'OperatorAccount',
);
const PROJECTS = {
  ...orNull(arrayOf(text({ maxLength: 100 }), { minItems: 1, maxItems: 1_000 })),
  description: 'Ids of the operator’s projects; null means all, including future ones.',
};
const BY_NAME = { operator: naming('Id or e-mail address of the operator', 'OPERATOR_NOT_FOUND') };
const mayManage = (action: string) => ofAllProjects(owner(action, { asksPassword: true }));

/** Operators, for those who see all projects and who can neither change nor remove their own account. */
export const OPERATOR_ACCOUNT_ROUTES: readonly Route[] = [
  route('GET /api/admin/operators', {
    id: 'listOperators',
    command: 'operator list',
    summary: 'List operators by address',
    access: ofAllProjects(OPERATOR),
    answers: ok(listOf(OPERATOR_SCHEMA), 'Operators'),
    errors: { 403: ['ALL_PROJECTS_REQUIRED'] },
    async handle({ app }) {
      return wholeList((await listOperators(app)).map(presentOperator));
    },
  }),
  route('POST /api/admin/operators', {
    id: 'addOperator',
    summary: 'Add an operator',
    access: mayManage('operator add'),
    body: object({ email: EMAIL, password: NEW_PASSWORD, role: ROLE, 'projects?': PROJECTS }, 'NewOperator'),
    example: { email: 'bob@example.com', password: 'correct horse battery', role: 'viewer' },
    answers: created(OPERATOR_SCHEMA, 'Operator added'),
    errors: {
      400: ['INVALID_EMAIL', 'VALIDATION_FAILED'],
      403: ['ALL_PROJECTS_REQUIRED'],
      404: ['PROJECT_NOT_FOUND'],
      409: ['OPERATOR_EXISTS'],
      503: ['BUSY'],
    },
    async handle({ app, body: { projects = null, ...input } }) {
      return presentOperator(await addOperator(app, { ...input, projects: await projectsOf(app, projects) }));
    },
  }),
  route('PATCH /api/admin/operators/:operator', {
    id: 'changeOperator',
    summary: 'Change an operator’s role or projects',
    description: 'You cannot change your own.',
    access: mayManage('operator change'),
    params: BY_NAME,
    body: changes({ role: ROLE, projects: PROJECTS }, 'OperatorChanges'),
    example: { role: 'viewer' },
    answers: ok(OPERATOR_SCHEMA, 'Operator changed'),
    errors: { 403: ['ALL_PROJECTS_REQUIRED'], 404: ['PROJECT_NOT_FOUND'], 409: ['OWN_ACCOUNT'] },
    async handle({ app, operator, params, body: { role, projects } }) {
      const named = await otherThan(app, operator, params.operator);
      const seen = projects === undefined ? undefined : await projectsOf(app, projects);
      return presentOperator(await changeOperator(app, named, { role, projects: seen }));
    },
  }),
  route('POST /api/admin/operators/:operator/password', {
    id: 'setOperatorPassword',
    summary: 'Set an operator’s password',
    description: 'Ends all sessions and tokens of the operator.',
    access: mayManage('operator set-password'),
    params: BY_NAME,
    bodySize: 'small',
    body: object({ password: NEW_PASSWORD }),
    example: { password: 'correct horse battery' },
    answers: done('Password set; every session has ended'),
    errors: { 403: ['ALL_PROJECTS_REQUIRED'], 409: ['OWN_ACCOUNT'], 503: ['BUSY'] },
    async handle({ app, operator, params, body }) {
      await setOperatorPassword(app, await otherThan(app, operator, params.operator), body.password);
    },
  }),
  route('DELETE /api/admin/operators/:operator', {
    id: 'removeOperator',
    summary: 'Remove an operator and revoke its tokens',
    access: mayManage('operator remove'),
    params: BY_NAME,
    answers: done('Operator removed'),
    errors: { 403: ['ALL_PROJECTS_REQUIRED'], 409: ['OWN_ACCOUNT'] },
    async handle({ app, operator, params }) {
      await removeOperator(app, await otherThan(app, operator, params.operator));
    },
  }),
];

/** The operator of that name; 409 OWN_ACCOUNT for the one who asks. */
async function otherThan(app: App, { signedIn }: ActingOperator, named: string): Promise<Operator> {
  const found = await requireOperatorNamed(app, named);
  if (signedIn?.operator._id.equals(found._id)) {
    throw conflict('OWN_ACCOUNT', 'You cannot change your own account. Use another operator or the command line');
  }
  return found;
}

/** The projects of those ids, each once; 404 PROJECT_NOT_FOUND. */
async function projectsOf(app: App, ids: readonly string[] | null): Promise<Project[] | null> {
  return ids && Promise.all([...new Set(ids)].map((id) => requireProject(app, id)));
}

interface OperatorChange {
  role?: OperatorRole | undefined;
  /** The projects it sees; null = all. */
  projects?: readonly Pick<Project, '_id'>[] | null | undefined;
}

/**
 * Changes what an operator may do, by one write: its sessions go on with it, in other processes within a second. 404
 * OPERATOR_NOT_FOUND when it is gone.
 */
async function changeOperator(
  app: App,
  { _id }: Pick<Operator, '_id'>,
  { role, projects }: OperatorChange,
): Promise<Operator> {
  const seen = projects === undefined ? {} : { projects: projects && projects.map((project) => project._id) };
  const changed = await operatorStore(app).findOneAndUpdate(
    { _id },
    { $set: { ...(role && { role }), ...seen } },
    { returnDocument: 'after' },
  );
  if (!changed) throw missing('OPERATOR_NOT_FOUND', 'The operator no longer exists');
  forgetOperators(app);
  return changed;
}
