import { forbidden } from '../../errors.js';
import { created, flagParameter, listOf, ok, route, type RouteList, say, wholeList } from '../../http/routes/route.js';
import {
  arrayOf,
  changes,
  FLAG,
  ID,
  MOMENT,
  NULL,
  object,
  oneOf,
  orNull,
  text,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { parseDuration } from '../../config/setting-readers.js';
import { OPERATOR, owner, PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { requireOperatedId, requireProven } from '../access/require-operator.js';
import { changeProject, listLoosenedSettings } from '../declaration/plan-projects.js';
import { LIMITS_SCHEMA } from '../declaration/project-declaration.js';
import { recountStorage } from '../files/usage-store.js';
import { OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import { createProject } from '../projects/create-project.js';
import { listProjects, presentProject } from '../projects/project-store.js';
import { PLAN_NAMES } from '../projects/project.js';
import { SIGN_IN, SIGN_IN_CHANGES } from '../projects/sign-in-settings.js';
import { rotateTokenSecret } from '../projects/token-secret.js';
import { deleteProject } from './delete-project.js';
import { GRACE } from './key-routes.js';
import { measureUsage, USAGE, presentProjectDetails } from './project-details.js';

const PLAN = oneOf(...PLAN_NAMES);
const FIELDS = {
  id: ID,
  name: TEXT,
  plan: PLAN,
  allowedDomains: arrayOf(TEXT),
  limits: object(Object.fromEntries(OVERRIDABLE_LIMITS.map((name) => [`${name}?`, WHOLE]))),
  signIn: SIGN_IN,
  createdAt: MOMENT,
  updatedAt: MOMENT,
};
const PROJECT = object(FIELDS, 'Project');
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
const NEW_PROJECT = object({
  project: PROJECT_DETAILS,
  keys: object({ publishable: TEXT, secret: TEXT }),
  created: oneOf(true),
});
const KNOWN_PROJECT = object({ project: PROJECT_DETAILS, keys: NULL, created: oneOf(false) });

const MAIL_SETTING = orNull(text({ maxLength: 500 }));

/** Projects as operators see them; what is inside a project has groups of its own. */
export const PROJECT_ROUTES: RouteList = {
  prefix: '/api/projects',
  tag: 'Projects',
  rate: 'operator',
  about: 'Projects as operators see them: settings, plans, limits, usage.',
  routes: [
    route('GET /api/projects', {
      id: 'listProjects',
      command: 'project list',
      summary: 'List the operator’s projects',
      access: OPERATOR,
      answers: ok(listOf(PROJECT), 'Projects'),
      async handle({ app, operator: { projects: seen } }) {
        const projects = await listProjects(app);
        return wholeList(projects.filter(({ _id }) => !seen || seen.has(_id.toHexString())).map(presentProject));
      },
    }),
    route('POST /api/projects', {
      id: 'createProject',
      summary: 'Create a project with its first keys',
      access: owner('project create'),
      body: object({ name: TEXT, 'plan?': PLAN, 'ifNotExists?': FLAG }, 'NewProject'),
      example: { name: 'shop', plan: 'pro' },
      answers: [
        created(NEW_PROJECT, 'Project created. The keys are shown only now.'),
        ok(KNOWN_PROJECT, 'The project already exists'),
      ],
      errors: { 400: ['INVALID_NAME'], 403: ['ALL_PROJECTS_REQUIRED'], 409: ['PROJECT_EXISTS'] },
      async handle({ app, operator, body }) {
        if (operator.projects) {
          throw forbidden('ALL_PROJECTS_REQUIRED', 'Only operators with access to all projects can create projects');
        }
        const { project, keys } = await createProject(app, body);
        const shown = presentProjectDetails(project);
        if (keys) return { project: shown, keys, created: true as const };
        return say({ project: shown, keys, created: false as const }, 'The project already exists', 200);
      },
    }),
    route('GET /api/projects/:projectId', {
      id: 'getProject',
      command: 'project show',
      summary: 'Get a project',
      access: PROJECT_OPERATOR,
      answers: ok(PROJECT_DETAILS, 'Project'),
      handle: ({ project }) => presentProjectDetails(project),
    }),
    route('PATCH /api/projects/:projectId', {
      id: 'updateProject',
      summary: 'Update a project',
      description: 'Only operators with access to all projects can set `plan` and `limits`.',
      access: projectOwner('project update', {
        // Whose account at the provider sends the mails reads their codes too.
        asksPassword: ({ providerApiKey, providerWebhookSecret }) =>
          typeof providerApiKey === 'string' || typeof providerWebhookSecret === 'string',
      }),
      query: { verify: flagParameter('Test the email provider’s key before it is stored') },
      body: changes(
        {
          name: TEXT,
          plan: PLAN,
          allowedDomains: arrayOf(text({ maxLength: 300 }), { minItems: 1, maxItems: 200 }),
          limits: LIMITS_SCHEMA,
          providerApiKey: MAIL_SETTING,
          providerFromEmail: MAIL_SETTING,
          providerWebhookSecret: MAIL_SETTING,
          storage: changes({ publishableUploads: FLAG }),
          signIn: SIGN_IN_CHANGES,
        },
        'ProjectChanges',
      ),
      example: { allowedDomains: ['https://shop.example'], limits: { mail: 100 } },
      answers: ok(PROJECT_DETAILS, 'Project updated'),
      errors: {
        400: [
          'INVALID_QUERY',
          'INVALID_NAME',
          'INVALID_DOMAIN',
          'INVALID_LIMIT',
          'INVALID_SIGN_IN',
          'INVALID_MAIL',
          'INVALID_MAIL_KEY',
          'MAIL_KEY_REFUSED',
        ],
        403: ['ALL_PROJECTS_REQUIRED'],
        409: ['PROJECT_EXISTS'],
        503: ['MAIL_PROVIDER_UNAVAILABLE'],
      },
      async handle({ app, ctx, operator, project, query, body }) {
        if (operator.projects && (body.plan !== undefined || body.limits !== undefined)) {
          throw forbidden(
            'ALL_PROJECTS_REQUIRED',
            'Only operators with access to all projects can change plan and limits',
          );
        }
        const { storage, providerWebhookSecret: webhookSecret, ...settings } = body;
        const wanted = { ...settings, webhookSecret, publishableUploads: storage?.publishableUploads };
        const prove = async (): Promise<void> => {
          if (listLoosenedSettings(project, body).length > 0) await requireProven(app, ctx);
        };
        return presentProjectDetails(await changeProject(app, project, wanted, { ...query, prove }));
      },
    }),
    route('DELETE /api/projects/:projectId', {
      id: 'deleteProject',
      summary: 'Delete a project and everything in it',
      access: owner('project delete', { asksPassword: true }),
      answers: ok(object({ id: ID }), 'Project deleted with everything in it'),
      async handle({ app, ctx }) {
        // One that is half deleted is no longer found otherwise, but deleting it again finishes the work.
        const { _id } = await deleteProject(app, requireOperatedId(ctx));
        return { id: _id.toHexString() };
      },
    }),
    route('GET /api/projects/:projectId/usage', {
      id: 'getUsage',
      command: 'project show',
      summary: 'Get the usage and limits of a project',
      description: 'Bytes for storage and database; null means unlimited.',
      access: PROJECT_OPERATOR,
      answers: ok(USAGE, 'Usage'),
      handle: ({ app, project }) => measureUsage(app, project),
    }),
    route('POST /api/projects/:projectId/rotate-tokens', {
      id: 'rotateTokens',
      summary: 'Rotate the signing key of access tokens',
      description:
        'Older tokens work for `grace`. Default: the lifetime of a token. `0s` invalidates them immediately.',
      access: projectOwner('secrets rotate', { asksPassword: true }),
      command: 'secrets rotate --tokens',
      body: object({ 'grace?': GRACE }),
      bodyIsOptional: true,
      example: { grace: '0s' },
      answers: ok(object({ kid: TEXT }), 'Access tokens are signed with a new secret'),
      async handle({ app, project, body: { grace } }) {
        const graceMs = grace === undefined ? app.config.accessTokenTtlMs : parseDuration(grace);
        const { kid } = await rotateTokenSecret(app, project, graceMs);
        return { kid };
      },
    }),
    route('POST /api/projects/:projectId/recount', {
      id: 'recountProject',
      summary: 'Recount the stored bytes',
      access: projectOwner('doctor'),
      answers: ok(object({ storage: object({ before: WHOLE, after: WHOLE }) }), 'Recounted'),
      errors: { 503: ['RECOUNT_BUSY'] },
      async handle({ app, project }) {
        return { storage: await recountStorage(app, project) };
      },
    }),
  ],
};
