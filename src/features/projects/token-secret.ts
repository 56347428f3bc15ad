import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { generateTokenKey, prepareTokenKey, type TokenAlgorithm, type TokenKey } from '../../platform/secrets/jwt.js';
import { randomToken } from '../../platform/ids.js';
import type { EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import type { Project, TokenSecret } from './project.js';
import { PROJECTS, changeProjectList } from './project-store.js';
import { cacheRegion } from '../../platform/cache.js';
import { tokenAlgorithmOf } from './sign-in-settings.js';

/** A new secret for a project's access tokens, encrypted and bound to that project. */
export function generateTokenSecret(
  app: Pick<App, 'secrets' | 'clock'>,
  projectId: ObjectId,
  algorithm: TokenAlgorithm = 'HS256',
): TokenSecret {
  return {
    kid: randomToken(9),
    encrypted: app.secrets.encrypt(generateTokenKey(algorithm), encryptionContext(projectId)),
    createdAt: new Date(app.clock.now()),
    ...(algorithm !== 'HS256' && { algorithm }),
  };
}

interface PreparedKeys {
  byKid: Map<string, TokenKey>;
}

/** Opened secrets, by the id of their project. */
export const TOKEN_KEYS = cacheRegion<PreparedKeys>('token-keys');

/**
 * The key that a `kid` names, or null. Opened secrets are kept for half a second: `kid`s are unique and what they name
 * never changes.
 */
export function findTokenKey(app: App, project: Project, kid: string): TokenKey | null {
  const secret = project.tokenSecrets.find((candidate) => candidate.kid === kid);
  if (!secret || !isLive(secret, app.clock.now())) return null;
  const kept = app.cache.peek(TOKEN_KEYS, project._id.toHexString());
  const known = kept?.byKid.get(kid);
  if (known) return known;
  const key = prepareTokenKey(
    app.secrets.decrypt(secret.encrypted, encryptionContext(project._id)),
    secret.algorithm ?? 'HS256',
  );
  const keys = kept ?? { byKid: new Map<string, TokenKey>() };
  keys.byKid.set(kid, key);
  app.cache.keep(TOKEN_KEYS, project._id.toHexString(), keys);
  return key;
}

/** The public halves of a project's live ES256 keys, as a JSON Web Key Set holds them. */
export function listPublicKeys(app: App, project: Project): PublicKey[] {
  const keys = project.tokenSecrets.map(({ kid }) => ({ kid, key: findTokenKey(app, project, kid) }));
  return keys.flatMap(({ kid, key }) => {
    if (key?.algorithm !== 'ES256') return [];
    const { x = '', y = '' } = key.checking.export({ format: 'jwk' });
    return [{ kid, alg: 'ES256', use: 'sig', kty: 'EC', crv: 'P-256', x, y }];
  });
}

interface PublicKey {
  kid: string;
  alg: 'ES256';
  use: 'sig';
  kty: 'EC';
  crv: 'P-256';
  x: string;
  y: string;
}

/** The newest secret's id and key: what new tokens are signed with. */
export function requireSigningKey(app: App, project: Project): { kid: string; key: TokenKey } {
  const newest = project.tokenSecrets.at(-1);
  const key = newest && findTokenKey(app, project, newest.kid);
  if (!key) throw new Error(`project ${project._id.toHexString()} has no token secret`);
  return { kid: newest.kid, key };
}

/**
 * The list with a new secret at its end, which signs from now on; the older ones check for another `graceMs`. Pure but
 * for the new secret.
 */
export function withNewSecret(
  app: Pick<App, 'secrets' | 'clock'>,
  projectId: ObjectId,
  list: readonly TokenSecret[],
  { algorithm, graceMs, nowMs }: { algorithm: TokenAlgorithm; graceMs: number; nowMs: number },
): TokenSecret[] {
  const end = new Date(nowMs + graceMs);
  const older = list
    .filter((secret) => isLive(secret, nowMs))
    .map((secret) => (secret.expiresAt && secret.expiresAt < end ? secret : { ...secret, expiresAt: end }));
  return [...older, generateTokenSecret(app, projectId, algorithm)];
}

/** Rotation lets an older secret verify for a while, so that no user is signed out. */
function isLive(secret: TokenSecret, nowMs: number): boolean {
  return secret.expiresAt === undefined || secret.expiresAt.getTime() > nowMs;
}

const encryptionContext = (projectId: ObjectId): string => `project:${projectId.toHexString()}:token-secret`;

export const ENCRYPTED_TOKEN_SECRETS: EncryptedPlace = {
  collection: PROJECTS,
  fields: (record) => {
    const { _id, tokenSecrets } = record as Project;
    return tokenSecrets.map(({ encrypted }, index) => ({
      path: `tokenSecrets.${index}.encrypted`,
      encrypted,
      context: encryptionContext(_id),
    }));
  },
};

/**
 * Signs new access tokens with a new secret of the same algorithm; older ones verify for another `graceMs` (0 = every
 * access token given out so far ends now). Safe beside another rotation.
 */
export async function rotateTokenSecret(app: App, project: Project, graceMs: number): Promise<TokenSecret> {
  const { tokenSecrets } = await changeProjectList(app, project, 'tokenSecrets', (current, nowMs) =>
    withNewSecret(app, project._id, current, {
      algorithm: tokenAlgorithmOf({ tokenSecrets: current }),
      graceMs,
      nowMs,
    }),
  );
  return tokenSecrets.at(-1)!;
}
