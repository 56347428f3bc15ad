import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { requireCollection } from '../collections/collection-store.js';
import type { Collection } from '../collections/collection.js';
import type { Project } from '../projects/project.js';

/** The collection of documents with this name: 404 for an unknown one, 403 USERS_BLOCKED for end users. */
export async function requireNamed(app: App, project: Project, name: string): Promise<Collection> {
  if (name.toLowerCase().startsWith('users')) {
    throw forbidden('USERS_BLOCKED', 'End users are not listed as documents: see /api/projects/:projectId/users');
  }
  return requireCollection(app, project._id, name);
}
