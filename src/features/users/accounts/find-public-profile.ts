import type { App } from '../../../app.js';
import { missing } from '../../../errors.js';
import { requireCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { USERS } from '../../collections/users-collection.js';
import type { PresentedDocument } from '../../documents/reply/present-document.js';
import type { Project } from '../../projects/project.js';
import { presentPublicUser } from './present-user.js';
import type { User } from '../user.js';
import { userStore } from '../user-store.js';

const NAMELESS =
  "Users of this project have no names. This adds the unique field they are found by: bsvc collection edit users --add-field 'username:String&'";

/**
 * The public fields of the active user with that `username`; 404 USER_NOT_FOUND, which says so where the schema has
 * no unique `username`.
 */
export async function requirePublicProfile(app: App, project: Project, username: string): Promise<PresentedDocument> {
  const { fields } = await requireCollection(app, project._id, USERS);
  // Unique, so that a name means one person, and so that there is an index to find it by.
  const named = fields.some((field) => field.name === 'username' && field.type === 'String' && field.unique);
  if (!named) throw missing('USER_NOT_FOUND', NAMELESS);
  const user = await findActive(app, project, username);
  if (!user) throw missing('USER_NOT_FOUND', 'There is no user with this name');
  return presentPublicUser(user, fields);
}

async function findActive(app: App, project: Project, username: string): Promise<User | null> {
  const found = await userStore(app, project._id).findOne({ username, isDeleted: false });
  return found?.[HIDDEN_FIELD].disabledAt ? null : found;
}
