import { createRemoteJWKSet, customFetch, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { LRUCache } from 'lru-cache';
import type { App } from '../../../app.js';
import { AppError, unauthenticated, unavailable, forbidden } from '../../../errors.js';
import { sha256Hex } from '../../../platform/ids.js';
import { CLOCKS_DIFFER_MS } from '../../../platform/time/clock.js';
import { callOf, findServer, identityOf, type SocialIdentity } from './social-identity.js';
import { type SocialProvider, requireSocialProvider } from './social-provider.js';
import type { Project } from '../../projects/project.js';
import { requireSigningKey } from '../../projects/token-secret.js';
import { noteUsed } from '../../quota/one-time-token.js';
import type { Client } from '../sessions/open-session.js';
import { completeSignIn, accountDisabled, type SignedIn } from '../sign-in/complete-sign-in.js';
import { resolveSocialUser, type SocialError } from './social-user.js';

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'];
const KNOWN_KEYS = 100;
const TOLERANCE_SECONDS = 60;

const keys = new WeakMap<App['db'], LRUCache<string, JWTVerifyGetKey>>();

/** An id token that has been checked. */
interface CheckedIdToken {
  identity: SocialIdentity;
  /** Names the token, however its signature is written. */
  id: string;
  expiresMs: number;
}

/**
 * Checks an id token that an app got from the provider itself: signature by the issuer's published keys, `iss`, `aud`
 * (any of the provider's client ids), `exp`, and `nonce`, which is the SHA-256 in hex of the value that the app kept
 * to itself. 401 ID_TOKEN_INVALID; 503 PROVIDER_UNAVAILABLE when the issuer's keys cannot be had.
 */
async function checkIdToken(
  app: App,
  provider: SocialProvider,
  { idToken, nonce }: { idToken: string; nonce: string },
): Promise<CheckedIdToken> {
  if (provider.kind !== 'oidc') throw idTokenInvalid(`${provider.name} issues no id tokens`);
  const server = await findServer(app, provider).catch((cause: unknown) => {
    throw providerUnavailable(cause);
  });
  if (!URL.canParse(server.jwks_uri ?? '')) throw providerUnavailable(new Error('the issuer names no jwks_uri'));
  const clientIds = [provider.clientId, ...(provider.appClientIds ?? [])];
  try {
    const { payload } = await jwtVerify(idToken, findKeys(app, provider, server.jwks_uri!), {
      audience: clientIds,
      algorithms: ALGORITHMS,
      requiredClaims: ['iss', 'sub', 'exp', 'iat'],
      currentDate: new Date(app.clock.machine()),
      clockTolerance: TOLERANCE_SECONDS,
    });
    // One issuer stands for many tenants: its discovery names the place of theirs.
    const tenant = typeof payload.tid === 'string' ? payload.tid : '';
    if (payload.iss !== server.issuer.replace('{tenantid}', tenant)) throw idTokenInvalid('it is of another issuer');
    if (!isIssuedTo(payload, clientIds)) throw idTokenInvalid('it is for several clients and issued to another');
    if (payload.nonce !== sha256Hex(nonce)) throw idTokenInvalid('its nonce is not the SHA-256 of yours');
    const id = sha256Hex(idToken.slice(0, idToken.lastIndexOf('.')));
    return { identity: identityOf(payload), id, expiresMs: payload.exp! * 1000 + CLOCKS_DIFFER_MS };
  } catch (error) {
    if (error instanceof AppError) throw error;
    // The library throws errors of many classes, depending on which part of the token is malformed.
    throw idTokenInvalid(error instanceof errors.JOSEError ? error.message : 'it is malformed');
  }
}

/** OpenID Connect Core 3.1.3.7: with several audiences only the authorized party (`azp`) may use the token. */
function isIssuedTo({ aud, azp }: JWTPayload, clientIds: readonly string[]): boolean {
  const isForSeveral = Array.isArray(aud) && aud.length > 1;
  return !isForSeveral || (typeof azp === 'string' && clientIds.includes(azp));
}

function findKeys(app: App, provider: SocialProvider, address: string): JWTVerifyGetKey {
  let own = keys.get(app.db);
  if (!own) keys.set(app.db, (own = new LRUCache({ max: KNOWN_KEYS })));
  const name = `${provider._id}:${address}`;
  let found = own.get(name);
  if (!found) {
    const remote = createRemoteJWKSet(new URL(address), { [customFetch]: callOf(app, provider) });
    found = async (header, token) => {
      try {
        return await remote(header, token);
      } catch (error) {
        const isForeign = error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys;
        throw isForeign ? error : providerUnavailable(error);
      }
    };
    own.set(name, found);
  }
  return found;
}

function idTokenInvalid(why: string): AppError {
  return unauthenticated('ID_TOKEN_INVALID', `The id token is not accepted: ${why}`);
}

function providerUnavailable(cause: unknown): AppError {
  return unavailable('PROVIDER_UNAVAILABLE', 'The keys of the provider cannot be loaded. Try again', {
    cause,
  });
}

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
