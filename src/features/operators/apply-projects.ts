import type { App } from '../../app.js';
import { applySchema } from '../collections/apply-schema.js';
import { createProject } from '../projects/create-project.js';
import { updateProject } from '../projects/update-project.js';
import type { ProjectPlan } from './plan-projects.js';

export interface CreatedKeys {
  project: string;
  keys: { publishable: string; secret: string };
}

/** Carries out plans, one project after the other; each step is whole by itself and a new plan holds what a failure left. Hands on the keys of each created project, which are shown once. */
export async function applyProjects(
  app: App,
  plans: readonly ProjectPlan[],
  onCreated: (created: CreatedKeys) => void,
): Promise<void> {
  for (const plan of plans) {
    let { project } = plan;
    if (!project) {
      const created = await createProject(app, { name: plan.name, plan: plan.settings.plan, ifNotExists: true });
      project = created.project;
      // Told at once: they exist nowhere else, should a later step fail.
      if (created.keys) onCreated({ project: plan.name, keys: created.keys });
    }
    if (plan.what.length > 0) project = await updateProject(app, project._id.toHexString(), plan.settings);
    await applySchema(app, project, plan.collections);
  }
}
