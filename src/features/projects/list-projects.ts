import type { App } from '../../app.js';
import type { Project } from './project.js';
import { projectStore } from './project-store.js';

/** All active projects by name. */
export function listProjects(app: Pick<App, 'db'>): Promise<Project[]> {
  return projectStore(app).find({ state: 'active' }).sort({ name: 1 }).toArray();
}
