import {
  arrayOf,
  envelope,
  flag,
  FLAG,
  ID,
  jsonAnswer,
  jsonBody,
  listOf,
  MOMENT,
  object,
  ok,
  oneOf,
  optional,
  orNull,
  TEXT,
  WHOLE,
  type GroupDescription,
  type Schema,
} from '../../http/routes/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { LIMIT_NAMES, OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import { PLAN_NAMES } from '../projects/project.js';
import { readNewProject, readProjectBody, readTokenRotation } from './project-routes.js';

const PLAN = oneOf(...PLAN_NAMES);
const FIELDS: Record<string, Schema> = {
  id: ID,
  name: TEXT,
  plan: PLAN,
  allowedDomains: arrayOf(TEXT),
  limits: object(Object.fromEntries(OVERRIDABLE_LIMITS.map((name) => [`${name}?`, WHOLE]))),
  createdAt: MOMENT,
  updatedAt: MOMENT,
};
/** What presentProject answers. */
const PROJECT = object(FIELDS, 'Project');
/** What presentProjectDetails answers. */
const PROJECT_DETAILS = object(
  {
    ...FIELDS,
    providerApiKey: { ...orNull(TEXT), description: 'The last characters of the key.' },
    providerFromEmail: orNull(TEXT),
    providerWebhookSecret: { ...orNull(TEXT), description: 'Masked.' },
    storage: object({ publishableUploads: FLAG, bucket: orNull(TEXT) }),
  },
  'ProjectDetails',
);
const STORAGE_USAGE = object(
  { files: WHOLE, bytes: WHOLE, limit: orNull(WHOLE), provider: oneOf('internal', 'external') },
  'StorageUsage',
);
const USAGE = object(
  {
    plan: PLAN,
    limits: object(Object.fromEntries(LIMIT_NAMES.map((name) => [name, orNull(WHOLE)]))),
    documents: WHOLE,
    collections: arrayOf(object({ name: TEXT, documents: WHOLE, trashed: WHOLE })),
    storage: STORAGE_USAGE,
    mail: object({ used: WHOLE, limit: orNull(WHOLE) }),
    webhooks: WHOLE,
  },
  'Usage',
);

/** As in project-routes.ts. */
export const PROJECT_ROUTES: GroupDescription = {
  prefix: '/api/projects',
  tag: 'Projects',
  about: 'Projects as operators see them: settings, plans, limits, usage.',
  routes: {
    'GET /': {
      id: 'listProjects',
      summary: 'List the projects that the operator sees',
      access: OPERATOR,
      answers: ok('All of them', listOf(PROJECT)),
    },
    'POST /': {
      id: 'createProject',
      summary: 'Create a project with its first keys',
      access: OWNER,
      body: jsonBody({ title: 'NewProject', ...readNewProject.schema }, { name: 'shop', plan: 'pro' }),
      answers: {
        201: jsonAnswer('Created; the keys are shown only now', envelope(createdProject({ created: true }))),
        200: jsonAnswer('With `ifNotExists`: it was there already', envelope(createdProject({ created: false }))),
      },
      refuses: { 400: ['INVALID_NAME'], 403: ['ALL_PROJECTS_REQUIRED'], 409: ['PROJECT_EXISTS'] },
    },
    'GET /:projectId': {
      id: 'getProject',
      summary: 'Get a project',
      access: OPERATOR,
      answers: ok('The project', PROJECT_DETAILS),
    },
    'PATCH /:projectId': {
      id: 'updateProject',
      summary: 'Change settings of a project',
      description:
        '`plan` and `limits` belong to who runs the whole service: only operators who see all projects set them.',
      access: OWNER,
      query: { verify: flag('Try the mail provider’s key before it is stored') },
      body: jsonBody(
        { title: 'ProjectChanges', ...readProjectBody.schema },
        {
          allowedDomains: ['https://shop.example'],
          limits: { mail: 100 },
        },
      ),
      answers: ok('The project', PROJECT_DETAILS),
      refuses: {
        400: [
          'INVALID_QUERY',
          'INVALID_NAME',
          'INVALID_DOMAIN',
          'INVALID_LIMIT',
          'INVALID_MAIL',
          'INVALID_MAIL_KEY',
          'MAIL_KEY_REFUSED',
        ],
        403: ['ALL_PROJECTS_REQUIRED'],
        409: ['PROJECT_EXISTS'],
        503: ['MAIL_PROVIDER_UNAVAILABLE'],
      },
    },
    'DELETE /:projectId': {
      id: 'deleteProject',
      summary: 'Delete a project with everything in it',
      access: OWNER,
      answers: ok('Deleted', object({ id: ID })),
    },
    'GET /:projectId/usage': {
      id: 'getUsage',
      summary: 'Count what a project holds, beside what its plan grants',
      access: OPERATOR,
      answers: ok('Bytes for storage and database; null is unlimited', USAGE),
    },
    'POST /:projectId/rotate-tokens': {
      id: 'rotateTokens',
      summary: 'Sign access tokens of end users with a new secret',
      description: 'Older tokens work for `grace`, by default as long as one can live; `0s` ends them all at once.',
      access: OWNER,
      body: optional(jsonBody(readTokenRotation.schema, { grace: '0s' })),
      answers: ok('The new secret’s name', object({ kid: TEXT })),
    },
    'POST /:projectId/recount': {
      id: 'recountProject',
      summary: 'Set the counter of stored bytes to what the files add up to',
      access: OWNER,
      answers: ok('The counter', object({ storage: object({ before: WHOLE, after: WHOLE }) })),
      refuses: { 503: ['RECOUNT_BUSY'] },
    },
  },
};

function createdProject({ created }: { created: boolean }): Schema {
  return object({
    project: PROJECT_DETAILS,
    keys: created ? object({ publishable: TEXT, secret: TEXT }) : { type: 'null' },
    created: { const: created },
  });
}
