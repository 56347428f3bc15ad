import type { App } from '../../app.js';
import { signToken } from '../../platform/secrets/jwt.js';
import type { Project } from '../projects/project.js';
import { requireSigningKey } from '../projects/token-secret.js';
import { formatTokenId, type TokenId } from './caller.js';

/** A signed access token for one end user of a project, good for `ttlMs` from now (decisions.md 2); `proof` is what
 * its session rests on. */
export function signAccessToken(
  app: App,
  project: Project,
  userId: string,
  ttlMs: number,
  id: TokenId = { session: null, issuedMs: app.clock.now() },
  proof?: { amr: string[]; authMs: number },
): string {
  const { kid, key } = requireSigningKey(app, project);
  const iat = Math.floor(app.clock.now() / 1000);
  const claims = {
    sub: userId,
    userId,
    projectId: project._id.toHexString(),
    iat,
    exp: iat + Math.floor(ttlMs / 1000),
    jti: formatTokenId(id),
    ...(proof && { amr: proof.amr, auth_time: Math.floor(proof.authMs / 1000) }),
  };
  return signToken(claims, kid, key);
}
