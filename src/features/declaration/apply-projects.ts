import type { App } from '../../app.js';
import type { ChangeOptions } from '../collections/change-collection.js';
import { applyDeclared } from '../changes/set-changes.js';
import { clearBucket, setBucket } from '../files/bucket/project-bucket.js';
import { createProject } from '../projects/create-project.js';
import type { Project } from '../projects/project.js';
import type { ItemChange } from './plan-items.js';
import { changeProject, type ProjectPlan } from './plan-projects.js';
import { applyOwnCode, type BucketChange } from './plan-single-parts.js';

/** Secrets that are shown once: the keys of a created project, the secret that signs calls of an address. */
export type CreatedSecret =
  | { project: string; keys: { publishable: string; secret: string } }
  | { project: string; kind: ItemChange['kind']; name: string; secret: string };

/**
 * Carries out plans, one project after the other; each step is whole by itself and a new plan holds what a failure
 * left. Hands on each secret that is shown once as soon as it exists. Stops between two steps when it is told to.
 */
export async function applyProjects(
  app: App,
  plans: readonly ProjectPlan[],
  { stop, onCreated, ...options }: ChangeOptions & { stop: AbortSignal; onCreated: (created: CreatedSecret) => void },
): Promise<void> {
  for (const plan of plans) {
    stop.throwIfAborted();
    let { project } = plan;
    if (!project) {
      const created = await createProject(app, { name: plan.name, plan: plan.settings.plan, ifNotExists: true });
      project = created.project;
      if (created.keys) onCreated({ project: plan.name, keys: created.keys });
    }
    if (Object.keys(plan.settings).length > 0) project = await changeProject(app, project, plan.settings);
    if (plan.bucket) project = await applyBucket(app, project, plan.bucket);
    await applyDeclared(app, project, plan.collections, { stop, ...options });
    if (plan.ownCode) project = await applyOwnCode(app, project, plan.ownCode);
    for (const { kind, name, apply } of removalsFirst(plan.items)) {
      stop.throwIfAborted();
      const secret = await apply(project);
      if (secret !== null) onCreated({ project: plan.name, kind, name, secret });
    }
  }
}

function applyBucket(app: App, project: Project, { to }: BucketChange): Promise<Project> {
  return to ? setBucket(app, project, to, false) : clearBucket(app, project);
}

/** Numbers of items are limited: what goes makes room for what comes. */
function removalsFirst(changes: readonly ItemChange[]): ItemChange[] {
  return [...changes].sort((a, b) => Number(b.action === 'drop') - Number(a.action === 'drop'));
}
