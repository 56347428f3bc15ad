import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { listCollections } from '../collections/list-collections.js';
import { planSchema, type SchemaChange } from '../collections/schema/plan-schema.js';
import { defaultUsersCollection, USERS } from '../collections/users-collection.js';
import { readMailChanges } from '../mail/project-mail.js';
import { findProject } from '../projects/project-store.js';
import type { Project } from '../projects/project.js';
import { readProjectChanges } from '../projects/update-project.js';
import { listWebhooks } from '../webhooks/list-webhooks.js';
import type { AnyProjectChanges } from './change-project.js';
import { planTemplates, type TemplateChange } from './plan-templates.js';
import { planWebhooks, type WebhookChange } from './plan-webhooks.js';
import type { ProjectDeclaration } from './project-declaration.js';
import { ObjectId } from 'bson';

/** What must be done to one project so that it is as declared. */
export interface ProjectPlan {
  name: string;
  /** null: it has to be created. */
  project: Project | null;
  settings: AnyProjectChanges;
  /** One line per changed setting. */
  what: string[];
  collections: SchemaChange[];
  templates: TemplateChange[];
  webhooks: WebhookChange[];
}

/**
 * Compares declared projects with the stored ones. Changes nothing. 400 for a project declared twice and for what
 * cannot be.
 */
export async function planProjects(
  app: App,
  declared: readonly ProjectDeclaration[],
  options: { prune: boolean },
): Promise<ProjectPlan[]> {
  const names = declared.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw invalid('INVALID_FILE', `The project "${repeated}" is declared twice`);
  const plans: ProjectPlan[] = [];
  for (const declaration of declared) {
    const project = await findProject(app, declaration.name);
    const { settings, what } = compareSettings(project, declaration);
    // Checked here, so that no earlier project is made before it is refused.
    readProjectChanges({ ...settings, name: declaration.name });
    readMailChanges(app, { _id: project?._id ?? new ObjectId() }, settings);
    plans.push({
      name: declaration.name,
      project,
      settings,
      what,
      collections: await planCollections(app, project, declaration, options),
      templates: await planTemplates(app, project, declaration.mail?.templates, options),
      webhooks: planWebhooks(project ? await listWebhooks(app, project) : [], declaration.webhooks, options),
    });
  }
  return plans;
}

async function planCollections(
  app: App,
  project: Project | null,
  { name, collections, users }: ProjectDeclaration,
  { prune }: { prune: boolean },
): Promise<SchemaChange[]> {
  if (!collections && !users) return [];
  if (users && collections?.some((collection) => collection.name === USERS))
    throw invalid('INVALID_FILE', `The project "${name}" declares its users twice: under users and under collections`);
  const own = defaultUsersCollection(project?._id ?? new ObjectId());
  const fixed = own.fields.filter((field) => field.required);
  const repeated = users?.fields.find((field) => fixed.some((other) => other.name === field.name));
  if (repeated) throw invalid('INVALID_FILE', `Users have the field "${repeated.name}" always: it is not declared`);
  const existing = project ? await listCollections(app, project._id) : [own];
  const declared = [...(collections ?? []), ...(users ? [{ name: USERS, fields: [...fixed, ...users.fields] }] : [])];
  return planSchema(existing, declared, { prune: prune && collections !== undefined });
}

function compareSettings(
  project: Project | null,
  { plan, allowedDomains, limits, mail, storage }: ProjectDeclaration,
): { settings: AnyProjectChanges; what: string[] } {
  const settings: AnyProjectChanges = {};
  const what: string[] = [];
  const now: Pick<Project, 'plan' | 'allowedDomains' | 'limits'> = project ?? {
    plan: 'free',
    allowedDomains: ['*'],
    limits: {},
  };
  if (plan !== undefined && plan !== now.plan) {
    settings.plan = plan;
    what.push(`plan: ${now.plan} -> ${plan}`);
  }
  const domains = allowedDomains?.map((domain) => domain.toLowerCase());
  if (domains && !isDeepStrictEqual(domains, now.allowedDomains)) {
    settings.allowedDomains = domains;
    what.push(`allowed domains: ${now.allowedDomains.join(', ')} -> ${domains.join(', ')}`);
  }
  for (const [name, limit] of Object.entries(limits ?? {})) {
    const present = now.limits[name] ?? null;
    if (present === limit) continue;
    settings.limits = { ...settings.limits, [name]: limit };
    what.push(`limit ${name}: ${present ?? 'of the plan'} -> ${limit ?? 'of the plan'}`);
  }
  const sender = project?.mail?.fromEmail ?? null;
  if (mail?.from !== undefined && mail.from !== sender) {
    settings.providerFromEmail = mail.from;
    what.push(`mail sender: ${sender ?? 'the service’s'} -> ${mail.from ?? 'the service’s'}`);
  }
  const uploads = project?.storage?.publishableUploads ?? false;
  if (storage?.publishableUploads !== undefined && storage.publishableUploads !== uploads) {
    settings.publishableUploads = storage.publishableUploads;
    what.push(`publishable uploads: ${uploads ? 'on' : 'off'} -> ${uploads ? 'off' : 'on'}`);
  }
  return { settings, what };
}
