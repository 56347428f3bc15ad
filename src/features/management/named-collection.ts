import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import type { Access } from '../../http/routes/route.js';
import type { InProject } from '../access/operator-access.js';
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

export interface InCollection extends InProject {
  /** The one that the path names. */
  collection: Collection;
}

/** The same operators in one collection of documents, none of end users. */
export function inCollection(access: Access<InProject>): Access<InCollection> {
  return {
    ...access,
    refuses: { ...access.refuses, 403: [...(access.refuses[403] ?? []), 'USERS_BLOCKED'] },
    async give(app, ctx) {
      const given = await access.give!(app, ctx);
      return { ...given, collection: await requireNamed(app, given.project, ctx.params.collection!) };
    },
  };
}
