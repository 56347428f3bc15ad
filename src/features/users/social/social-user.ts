import type { App } from '../../../app.js';
import { AppError } from '../../../errors.js';
import { unlessDuplicate } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import { requireCollection } from '../../collections/collection-store.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { USERS } from '../../collections/users-collection.js';
import type { Project } from '../../projects/project.js';
import { insertServiceRecord } from '../../quota/insert-service-record.js';
import { isEmail, normaliseEmail } from '../credentials.js';
import { identityStore, isLinkOf, removeLink, type LinkedIdentity } from '../accounts/sign-in-methods.js';
import { isOfHook } from '../../hooks/before-calls.js';
import type { Client } from '../sessions/open-session.js';
import { claimAccount, createVerifiedUser } from '../codes/ownership.js';
import type { SocialIdentity } from './social-identity.js';
import type { SocialProvider } from './social-provider.js';
import type { User } from '../user.js';
import { findUser, findUserByEmail } from '../user-store.js';

/** Why a person whom the provider vouched for cannot come in; goes back to the application as `error`. */
export type SocialError = 'account_disabled' | 'email_unverified' | 'profile_incomplete' | 'project_full';

const MAX_RACES = 3;

export interface SocialUser {
  user: User;
  /** The linked identity by which the user came in. */
  identity: string;
}

/**
 * The user that a provider's identity stands for: the one linked before, the one with the same confirmed address, or a
 * new one. An account that was opened with that address but never confirmed it loses its password, sessions and other
 * identities: the person who set them did not own the address.
 */
export async function resolveSocialUser(
  app: App,
  project: Project,
  provider: SocialProvider,
  identity: SocialIdentity,
  client: Client,
): Promise<SocialUser | SocialError> {
  const _id = identityId(project, provider, identity);
  const email = normaliseEmail(identity.verifiedEmail ?? '');
  for (let race = 0; race < MAX_RACES; race++) {
    const linked = await findLinked(app, project, _id);
    if (linked) return linked[HIDDEN_FIELD].disabledAt ? 'account_disabled' : { user: linked, identity: _id };
    if (!isEmail(email)) return 'email_unverified';
    const existing = await findUserByEmail(app, project._id, email);
    const user = existing
      ? await claim(app, project, existing)
      : await create(app, project, { email, client }, identity);
    if (user === null) continue;
    if (typeof user === 'string') return user;
    if (await linkIdentity(app, project, provider.name, _id, user)) return { user, identity: _id };
  }
  throw new Error('an account with this address is being changed by others');
}

/** The id of the link of a person at a provider. */
export function identityId(project: Project, provider: SocialProvider, identity: SocialIdentity): string {
  return sha256Hex(JSON.stringify([project._id.toHexString(), provider.issuer, identity.subject]));
}

/** The user whom an identity opens; a link that opens nothing any more is removed. */
export async function findLinked(app: App, project: Project, _id: string): Promise<User | null> {
  const link = await identityStore(app).findOne({ _id });
  const user = link && (await findUser(app, project._id, link.userId));
  if (!link || (user && isLinkOf(link, user))) return user;
  await removeLink(app, link);
  return null;
}

/** Null when the account changed in between: look again. */
async function claim(app: App, project: Project, user: User): Promise<User | SocialError | null> {
  return user[HIDDEN_FIELD].disabledAt ? 'account_disabled' : claimAccount(app, project, user);
}

/** Null when another request created the account first. */
async function create(
  app: App,
  project: Project,
  person: { email: string; client: Client },
  identity: SocialIdentity,
): Promise<User | SocialError | null> {
  const collection = await requireCollection(app, project._id, USERS);
  const named =
    identity.name !== null && collection.fields.some(({ name, type }) => name === 'name' && type === 'String');
  try {
    return await createVerifiedUser(app, project, person, named ? { name: identity.name } : {});
  } catch (error) {
    if (!(error instanceof AppError) || isOfHook(error)) throw error;
    if (error.code === 'EMAIL_TAKEN') return null;
    if (error.code === 'QUOTA_EXCEEDED') return 'project_full';
    if (error.kind === 'invalid' || error.kind === 'conflict') return 'profile_incomplete';
    throw error;
  }
}

/**
 * Links the identity under the ownership that the user was read with; false when another request linked it first.
 */
export async function linkIdentity(
  app: App,
  project: Project,
  provider: string,
  _id: string,
  user: User,
): Promise<boolean> {
  const { ownership } = user[HIDDEN_FIELD];
  const made: LinkedIdentity = {
    _id,
    projectId: project._id,
    userId: user._id,
    provider,
    ...(ownership !== undefined && { ownership }),
    createdAt: new Date(app.clock.now()),
  };
  return (await unlessDuplicate(insertServiceRecord(app, 'socialIdentities', made))) !== null;
}
