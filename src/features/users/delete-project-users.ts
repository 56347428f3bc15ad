import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { TOKEN_CUTOFFS } from '../access/token-cutoff.js';
import { documentsName } from '../collections/collection.js';
import { COLLECTIONS } from '../collections/collection-store.js';
import { defaultUsersCollection, USERS } from '../collections/users-collection.js';
import { SOCIAL_IDENTITIES, PASSKEYS } from './accounts/sign-in-methods.js';
import { ONE_TIME_TOKENS } from '../quota/one-time-token.js';
import { INVITES } from './invites/invite.js';
import { COUNTERS } from './counters.js';
import { ONE_TIME_CODES } from './codes/one-time-code.js';
import { SESSIONS } from './sessions/session.js';
import { SOCIAL_PROVIDERS } from './social/social-provider.js';

const OF_PROJECT = [
  SESSIONS,
  TOKEN_CUTOFFS,
  ONE_TIME_CODES,
  ONE_TIME_TOKENS,
  COUNTERS,
  INVITES,
  SOCIAL_IDENTITIES,
  PASSKEYS,
  SOCIAL_PROVIDERS,
];

/** Removes the users of a project that is being deleted, and all that belongs to them. Harmless to repeat. */
export async function deleteProjectUsers(app: App, projectId: ObjectId): Promise<void> {
  for (const name of OF_PROJECT) await app.db.collection(name).deleteMany({ projectId });
  await app.db.collection(documentsName(defaultUsersCollection(projectId))).drop();
  await app.db.collection(COLLECTIONS).deleteOne({ projectId, name: USERS });
}
