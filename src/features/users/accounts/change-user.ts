import type { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { requireCollection } from '../../collections/collection-store.js';
import { USERS } from '../../collections/users-collection.js';
import { changeDocumentRecord } from '../../documents/store/document-store.js';
import type { Project } from '../../projects/project.js';
import type { User } from '../user.js';

/**
 * Changes the account that matches by one write, which webhooks receive as an update of `users`, and
 * answers it as it is afterwards; null when none matches.
 */
export async function changeUser(
  app: App,
  project: Project,
  filter: Record<string, unknown> & { _id: ObjectId },
  set: Record<string, unknown>,
): Promise<User | null> {
  const collection = await requireCollection(app, project._id, USERS);
  const changed = await changeDocumentRecord(app, collection, { ...filter, isDeleted: false }, set);
  return changed as User | null;
}
