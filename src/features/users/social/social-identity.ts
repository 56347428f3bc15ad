import { createPrivateKey } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import * as openid from 'openid-client';
import type { App } from '../../../app.js';
import { signClaims } from '../../../platform/secrets/jwt.js';
import { openClientSecret, type SocialProvider } from './social-provider.js';

/** The provider's word about the person who signed in there. */
export interface SocialIdentity {
  /** The provider's own name for the person: never changes, never means someone else. */
  subject: string;
  /** Null when the provider does not vouch for one. */
  verifiedEmail: string | null;
  name: string | null;
}

/** The values to keep between the way out and the way back. */
export interface SocialChecks {
  state: string;
  nonce: string;
  verifier: string;
}

const CALL_LIMIT_SECONDS = 10;
const KNOWN_FOR_MS = 10 * 60_000;

// One per database: what issuers publish about themselves is read once in a while, not once per sign-in.
const known = new WeakMap<App['db'], LRUCache<string, Promise<openid.Configuration>>>();

/** The address at the provider where the person signs in, and the checks for the way back. */
export async function beginAtProvider(
  app: App,
  provider: SocialProvider,
  callback: string,
): Promise<{ url: string; checks: SocialChecks }> {
  const config = await findConfiguration(app, provider);
  const checks = {
    state: openid.randomState(),
    nonce: openid.randomNonce(),
    verifier: openid.randomPKCECodeVerifier(),
  };
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: callback,
    scope: provider.scopes.join(' '),
    state: checks.state,
    code_challenge: await openid.calculatePKCECodeChallenge(checks.verifier),
    code_challenge_method: 'S256',
    ...(provider.kind === 'oidc' && { nonce: checks.nonce }),
    // Apple sends address and name in no other way.
    ...(provider.apple && { response_mode: 'form_post' }),
  });
  return { url: url.href, checks };
}

/**
 * Exchanges what the provider sent back for the person's identity. Throws whatever is wrong with it: state, code,
 * signature, issuer, audience, nonce, time.
 */
export async function readIdentity(
  app: App,
  provider: SocialProvider,
  returned: URL,
  checks: SocialChecks,
): Promise<SocialIdentity> {
  const config = await findConfiguration(app, provider);
  const oidc = provider.kind === 'oidc';
  const tokens = await openid.authorizationCodeGrant(config, returned, {
    expectedState: checks.state,
    pkceCodeVerifier: checks.verifier,
    ...(oidc && { expectedNonce: checks.nonce, idTokenExpected: true }),
  });
  if (!oidc) return readGithubIdentity(config, provider, tokens.access_token);
  const claims = tokens.claims()!;
  const known =
    typeof claims.email === 'string' ? claims : await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
  return identityOf({ ...known, sub: claims.sub });
}

/** The person of whom claims tell; Apple writes `email_verified` as text. */
export function identityOf({ sub, email, email_verified: verified, name }: Record<string, unknown>): SocialIdentity {
  const isVerified = verified === true || verified === 'true';
  return {
    subject: sub as string,
    verifiedEmail: typeof email === 'string' && isVerified ? email : null,
    name: typeof name === 'string' ? name : null,
  };
}

/** What an OpenID issuer says of itself. */
export async function findServer(app: App, provider: SocialProvider): Promise<openid.ServerMetadata> {
  return (await findConfiguration(app, provider)).serverMetadata();
}

/** Calls a provider: a private address only where the service's own operator has named it. */
export function callOf(app: App, provider: SocialProvider): typeof fetch {
  return provider.mayBePrivate ? fetch : (app.outbound.fetch as typeof fetch);
}

function findConfiguration(app: App, provider: SocialProvider): Promise<openid.Configuration> {
  let cache = known.get(app.db);
  if (!cache) known.set(app.db, (cache = new LRUCache({ max: 100, ttl: KNOWN_FOR_MS })));
  // Encrypted again with every change of the settings.
  const key = `${provider._id}:${provider.encryptedSecret}`;
  let found = cache.get(key);
  if (!found) {
    const own = cache;
    found = openConfiguration(app, provider);
    own.set(key, found);
    found.catch(() => own.delete(key));
  }
  return found;
}

async function openConfiguration(app: App, provider: SocialProvider): Promise<openid.Configuration> {
  const secret = openClientSecret(app, provider);
  const authentication = provider.apple ? authenticateAtApple(app, provider, secret) : authenticateBy(secret);
  // Plain http is accepted for an issuer on this machine only; see isSafeWebAddress.
  const plain: ((config: openid.Configuration) => void)[] = provider.issuer.startsWith('http:')
    ? [openid.allowInsecureRequests]
    : [];
  const call = callOf(app, provider);
  if (provider.kind === 'oidc') {
    return openid.discovery(new URL(provider.issuer), provider.clientId, undefined, authentication, {
      [openid.customFetch]: call,
      // The library trusts the connection and leaves the signature unchecked unless configured otherwise.
      execute: [openid.enableNonRepudiationChecks, ...plain],
      timeout: CALL_LIMIT_SECONDS,
    });
  }
  const config = new openid.Configuration(
    {
      issuer: provider.issuer,
      authorization_endpoint: `${provider.issuer}/login/oauth/authorize`,
      token_endpoint: `${provider.issuer}/login/oauth/access_token`,
    },
    provider.clientId,
    undefined,
    authentication,
  );
  config[openid.customFetch] = call;
  config.timeout = CALL_LIMIT_SECONDS;
  for (const allow of plain) allow(config);
  return config;
}

/**
 * Sends the secret as the provider's discovery asks: in the body where it may stand there or nothing is said, else in
 * the Authorization header.
 */
function authenticateBy(secret: string): openid.ClientAuth {
  const [inBody, inHeader] = [openid.ClientSecretPost(secret), openid.ClientSecretBasic(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported;
    const authenticate = (methods ?? [IN_BODY]).includes(IN_BODY) ? inBody : inHeader;
    authenticate(server, client, body, headers);
  };
}

const IN_BODY = 'client_secret_post';
const APPLE_SECRET_SECONDS = 300;

/** Signs a secret for each exchange, as Apple wants it. */
function authenticateAtApple(app: App, { apple, clientId, issuer }: SocialProvider, key: string): openid.ClientAuth {
  return (_server, _client, body) => {
    const { teamId, keyId } = apple!;
    const iat = Math.floor(app.clock.now() / 1000);
    const claims = { iss: teamId, sub: clientId, aud: issuer, iat, exp: iat + APPLE_SECRET_SECONDS };
    body.set('client_id', clientId);
    body.set('client_secret', signClaims(claims, keyId, createPrivateKey(key)));
  };
}

interface GithubUser {
  id: number;
  login: string;
  name: string | null;
}

interface GithubEmail {
  email: string;
  primary: boolean;
  verified: boolean;
}

async function readGithubIdentity(
  config: openid.Configuration,
  provider: SocialProvider,
  accessToken: string,
): Promise<SocialIdentity> {
  const api = provider.issuer === 'https://github.com' ? 'https://api.github.com' : `${provider.issuer}/api/v3`;
  const read = async <T>(path: string): Promise<T> => {
    const headers = new Headers({ accept: 'application/vnd.github+json', 'user-agent': 'bsvc' });
    const answer = await openid.fetchProtectedResource(
      config,
      accessToken,
      new URL(`${api}${path}`),
      'GET',
      null,
      headers,
    );
    if (!answer.ok) throw new Error(`GitHub answered ${answer.status} for ${path}`);
    return (await answer.json()) as T;
  };
  const user = await read<GithubUser>('/user');
  const emails = await read<GithubEmail[]>('/user/emails');
  if (!Number.isSafeInteger(user.id)) throw new Error('GitHub named no user');
  const email = emails.find(({ primary, verified }) => primary && verified);
  return { subject: String(user.id), verifiedEmail: email?.email ?? null, name: user.name ?? user.login };
}
