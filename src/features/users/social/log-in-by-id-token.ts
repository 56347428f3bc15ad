import type { App } from '../../../app.js';
import { forbidden, type AppError } from '../../../errors.js';
import type { Project } from '../../projects/project.js';
import { requireSigningKey } from '../../projects/token-secret.js';
import { noteUsed } from '../../quota/one-time-token.js';
import type { Client } from '../sessions/open-session.js';
import { completeSignIn, accountDisabled, type SignedIn } from '../sign-in/complete-sign-in.js';
import { requireSocialProvider } from './social-provider.js';
import { resolveSocialUser, type SocialError } from './social-user.js';

/**
 * Signs in by an id token that an app got from the provider itself; a token opens one session at most. 401
 * ID_TOKEN_INVALID; 403 ACCOUNT_DISABLED, EMAIL_UNVERIFIED, PROFILE_INCOMPLETE or QUOTA_EXCEEDED; 503
 * PROVIDER_UNAVAILABLE.
 */
export async function logInByIdToken(
  app: App,
  project: Project,
  given: { provider: string; idToken: string; nonce: string },
  client: Client,
): Promise<SignedIn> {
  requireSigningKey(app, project);
  const provider = await requireSocialProvider(app, project._id, given.provider);
  const { checkIdToken, idTokenInvalid } = await import('./id-token.js');
  const { identity, id, expiresMs } = await checkIdToken(app, provider, given);
  if (!(await noteUsed(app, project._id, id, new Date(expiresMs)))) throw idTokenInvalid('it was used already');
  const found = await resolveSocialUser(app, project, provider, identity, client);
  if (typeof found === 'string') throw refusalOf(found);
  const { user } = found;
  return {
    user,
    tokens: await completeSignIn(app, project, user, client, { method: 'social', identity: found.identity }),
  };
}

function refusalOf(refusal: SocialError): AppError {
  switch (refusal) {
    case 'account_disabled':
      return accountDisabled();
    case 'email_unverified':
      return forbidden('EMAIL_UNVERIFIED', 'The provider has no verified email address of this user');
    case 'profile_incomplete':
      return forbidden('PROFILE_INCOMPLETE', 'Required fields of the account are missing in the provider’s profile');
    case 'project_full':
      return forbidden('QUOTA_EXCEEDED', 'The project’s limit of accounts is reached');
  }
}
