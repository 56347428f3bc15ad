import type { App } from '../../app.js';
import { parseDuration } from '../../setting-readers.js';
import { forbidden } from '../../errors.js';
import { readFlag } from '../../http/routes/read-flag.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { compileReader } from '../../platform/schema/json-schema.js';
import {
  operatedProject,
  operatorOf,
  requireOperatedId,
  requireOperator,
  requireOwner,
} from '../access/require-operator.js';
import { recountStorage } from '../files/recount-storage.js';
import { createProject } from '../projects/create-project.js';
import { listProjects } from '../projects/list-projects.js';
import { presentProject } from '../projects/present-project.js';
import { PLAN_NAMES, type PlanName } from '../projects/project.js';
import { rotateTokenSecret } from '../projects/rotate-token-secret.js';
import { changeProject } from '../declaration/change-project.js';
import { deleteProject } from './delete-project.js';
import { GRACE } from './key-routes.js';
import { measureUsage } from './measure-usage.js';
import { presentProjectDetails } from './present-project-details.js';
import { LIMITS_SCHEMA } from '../declaration/project-declaration.js';

const PREFIX = '/api/projects';
const PLAN = { enum: PLAN_NAMES };
const TEXT_OR_NULL = { type: ['string', 'null'], maxLength: 500 };

export const readNewProject = compileReader<{ name: string; plan?: PlanName; ifNotExists?: boolean }>({
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: { name: { type: 'string' }, plan: PLAN, ifNotExists: { type: 'boolean' } },
});

export const readTokenRotation = compileReader<{ grace?: string }>({
  type: 'object',
  additionalProperties: false,
  properties: { grace: GRACE },
});

interface ProjectBody {
  name?: string;
  plan?: PlanName;
  allowedDomains?: string[];
  limits?: Record<string, number | null>;
  providerApiKey?: string | null;
  providerFromEmail?: string | null;
  providerWebhookSecret?: string | null;
  storage?: { publishableUploads?: boolean };
}

export const readProjectBody = compileReader<ProjectBody>({
  type: 'object',
  minProperties: 1,
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    plan: PLAN,
    allowedDomains: { type: 'array', items: { type: 'string', maxLength: 300 }, minItems: 1, maxItems: 200 },
    limits: LIMITS_SCHEMA,
    providerApiKey: TEXT_OR_NULL,
    providerFromEmail: TEXT_OR_NULL,
    providerWebhookSecret: TEXT_OR_NULL,
    storage: {
      type: 'object',
      minProperties: 1,
      additionalProperties: false,
      properties: { publishableUploads: { type: 'boolean' } },
    },
  },
});

/** Projects as operators see them; what is inside a project has groups of its own. */
export function projectRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const operator = requireOperator(app);
  const owner = (action: string) => requireOwner(app, action);

  router.get('/', operator, async (ctx) => {
    const { projects: seen } = operatorOf(ctx);
    const projects = await listProjects(app);
    const items = projects.filter(({ _id }) => !seen || seen.has(_id.toHexString())).map(presentProject);
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Projects' };
  });

  router.post('/', owner('project create'), async (ctx) => {
    if (operatorOf(ctx).projects)
      throw forbidden('ALL_PROJECTS_REQUIRED', 'Only an operator who sees all projects may create one');
    const { project, keys, created } = await createProject(app, readNewProject(ctx.request.body));
    ctx.status = created ? 201 : 200;
    ctx.body = {
      success: true,
      data: { project: presentProjectDetails(project), keys, created },
      message: created ? 'Project created. The keys are shown only now.' : 'The project was there already',
    };
  });

  router.get('/:projectId', operator, async (ctx) => {
    const project = await operatedProject(app, ctx);
    ctx.body = { success: true, data: presentProjectDetails(project), message: 'Project' };
  });

  router.patch('/:projectId', owner('project update'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { storage, providerWebhookSecret, ...changes } = readProjectBody(ctx.request.body);
    if (operatorOf(ctx).projects && (changes.plan !== undefined || changes.limits !== undefined))
      throw forbidden(
        'ALL_PROJECTS_REQUIRED',
        'Plan and limits are set by who runs the whole service: only an operator who sees all projects may change them',
      );
    const verify = readFlag(ctx.query, 'verify', false);
    const changed = await changeProject(
      app,
      project,
      {
        ...changes,
        webhookSecret: providerWebhookSecret,
        publishableUploads: storage?.publishableUploads,
      },
      { verify },
    );
    ctx.body = { success: true, data: presentProjectDetails(changed), message: 'Project updated' };
  });

  router.delete('/:projectId', owner('project delete'), async (ctx) => {
    // One that is half deleted is no longer found otherwise, but deleting it again finishes the work.
    const { _id } = await deleteProject(app, requireOperatedId(ctx));
    ctx.body = { success: true, data: { id: _id.toHexString() }, message: 'Project deleted with everything in it' };
  });

  router.get('/:projectId/usage', operator, async (ctx) => {
    const usage = await measureUsage(app, await operatedProject(app, ctx));
    ctx.body = { success: true, data: usage, message: 'Usage' };
  });

  router.post('/:projectId/rotate-tokens', owner('secrets rotate-tokens'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { grace } = readTokenRotation(ctx.request.body === undefined ? {} : ctx.request.body);
    const graceMs = grace === undefined ? app.config.accessTokenTtlMs : parseDuration(grace);
    const { kid } = await rotateTokenSecret(app, project, graceMs);
    ctx.body = { success: true, data: { kid }, message: 'Access tokens are signed with a new secret' };
  });

  router.post('/:projectId/recount', owner('project recount'), async (ctx) => {
    const storage = await recountStorage(app, await operatedProject(app, ctx));
    ctx.body = { success: true, data: { storage }, message: 'Counted anew' };
  });

  return { prefix: PREFIX, router };
}
