import { isDeepStrictEqual } from 'node:util';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { listCollections } from '../collections/list-collections.js';
import { planSchema, type SchemaChange } from '../collections/plan-schema.js';
import { defaultUsersCollection } from '../collections/users-collection.js';
import { findProject } from '../projects/project-store.js';
import type { Project } from '../projects/project.js';
import type { ProjectChanges } from '../projects/update-project.js';
import type { ProjectDeclaration } from './project-declaration.js';
import { ObjectId } from 'bson';

/** What must be done to one project so that it is as declared. */
export interface ProjectPlan {
  name: string;
  /** null: it has to be created. */
  project: Project | null;
  settings: ProjectChanges;
  /** One line per changed setting. */
  what: string[];
  collections: SchemaChange[];
}

/** Compares declared projects with the stored ones. Changes nothing. 400 for a project declared twice or a collection that cannot be. */
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
    const existing = project ? await listCollections(app, project._id) : [defaultUsersCollection(new ObjectId())];
    const collections = declaration.collections ? planSchema(existing, declaration.collections, options) : [];
    plans.push({ name: declaration.name, project, settings, what, collections });
  }
  return plans;
}

function compareSettings(
  project: Project | null,
  { plan, allowedDomains, limits }: ProjectDeclaration,
): { settings: ProjectChanges; what: string[] } {
  const settings: ProjectChanges = {};
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
  return { settings, what };
}
