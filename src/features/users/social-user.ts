import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import { isDuplicateKey, type Store } from '../../platform/database.js';
import { randomToken, sha256Hex } from '../../platform/ids.js';
import { requireCollection } from '../collections/collection-store.js';
import { HIDDEN_FIELD } from '../collections/field.js';
import { USERS } from '../collections/users-collection.js';
import type { Project } from '../projects/project.js';
import { changeUser } from './change-user.js';
import { isEmail, normaliseEmail } from './credentials.js';
import { endSessions, sessionsEnd } from './end-sessions.js';
import { insertUser } from './insert-user.js';
import { readNewUser } from './new-user.js';
import type { SocialIdentity } from './social-identity.js';
import type { SocialProvider } from './social-provider.js';
import type { User } from './user.js';
import { findUser, findUserByEmail } from './user-store.js';

export const SOCIAL_IDENTITIES = 'social_identities';

/** A person at a provider who is a user here. */
interface LinkedIdentity {
  /** Hash of project, issuer and subject. */
  _id: string;
  projectId: ObjectId;
  userId: ObjectId;
  provider: string;
  createdAt: Date;
}

/** Why a person whom the provider vouched for cannot come in; goes back to the application as `error`. */
export type SocialRefusal = 'account_disabled' | 'email_unverified' | 'profile_incomplete';

export function identityStore(app: Pick<App, 'db'>): Store<LinkedIdentity> {
  return app.db.collection<LinkedIdentity>(SOCIAL_IDENTITIES);
}

const MAX_RACES = 3;

/**
 * The user that a provider's identity stands for: the one linked before, the one with the same confirmed address, or a new one. An account that was
 * opened with that address but never confirmed it loses its password and sessions: whoever set them did not own the address.
 */
export async function resolveSocialUser(
  app: App,
  project: Project,
  provider: SocialProvider,
  identity: SocialIdentity,
): Promise<User | SocialRefusal> {
  const linked = await findLinked(app, project, provider, identity);
  if (linked) return linked[HIDDEN_FIELD].disabledAt ? 'account_disabled' : linked;
  const email = normaliseEmail(identity.verifiedEmail ?? '');
  if (!isEmail(email)) return 'email_unverified';
  for (let race = 0; race < MAX_RACES; race++) {
    const existing = await findUserByEmail(app, project._id, email);
    const user = existing ? await claim(app, project, existing) : await create(app, project, email, identity);
    if (user === null) continue;
    if (typeof user === 'string') return user;
    await link(app, project, provider, identity, user);
    return user;
  }
  throw new Error('an account with this address is being changed by others');
}

function identityId(project: Project, provider: SocialProvider, identity: SocialIdentity): string {
  return sha256Hex(JSON.stringify([project._id.toHexString(), provider.issuer, identity.subject]));
}

async function findLinked(
  app: App,
  project: Project,
  provider: SocialProvider,
  identity: SocialIdentity,
): Promise<User | null> {
  const _id = identityId(project, provider, identity);
  const link = (await identityStore(app).findOne({ _id })) as LinkedIdentity | null;
  const user = link && (await findUser(app, project._id, link.userId));
  if (link && !user) await identityStore(app).deleteOne({ _id, userId: link.userId });
  return user;
}

/** Null when the account changed in between: look again. */
async function claim(app: App, project: Project, user: User): Promise<User | SocialRefusal | null> {
  if (user[HIDDEN_FIELD].disabledAt) return 'account_disabled';
  if (user.emailVerified) return user;
  const claimed = await changeUser(
    app,
    project,
    { _id: user._id, email: user.email, emailVerified: false },
    { emailVerified: true, [`${HIDDEN_FIELD}.passwordHash`]: null, ...sessionsEnd(app) },
  );
  if (claimed) await endSessions(app, project, claimed, 'password changed');
  return claimed;
}

/** Null when another request created the account first. */
async function create(
  app: App,
  project: Project,
  email: string,
  identity: SocialIdentity,
): Promise<User | SocialRefusal | null> {
  const collection = await requireCollection(app, project._id, USERS);
  const named =
    identity.name !== null && collection.fields.some(({ name, type }) => name === 'name' && type === 'String');
  try {
    // The password only satisfies the schema; nothing of it is stored.
    const body = { email, password: randomToken(32), emailVerified: true, ...(named && { name: identity.name }) };
    const { user } = readNewUser(collection, body, 'project', app.clock.now());
    await insertUser(app, collection, user);
    return user;
  } catch (error) {
    if (error instanceof AppError && error.code === 'EMAIL_TAKEN') return null;
    if (error instanceof AppError && (error.kind === 'invalid' || error.kind === 'conflict'))
      return 'profile_incomplete';
    throw error;
  }
}

async function link(
  app: App,
  project: Project,
  provider: SocialProvider,
  identity: SocialIdentity,
  user: User,
): Promise<void> {
  try {
    await identityStore(app).insertOne({
      _id: identityId(project, provider, identity),
      projectId: project._id,
      userId: user._id,
      provider: provider.name,
      createdAt: new Date(app.clock.now()),
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}
