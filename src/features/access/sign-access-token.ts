import { randomUUID } from 'node:crypto';
import type { App } from '../../app.js';
import { signToken } from '../../platform/jwt.js';
import type { Project } from '../projects/project.js';
import { requireSigningKey } from '../projects/token-secret.js';

/** A signed access token for one end user of a project, good for `ttlMs` from now (decisions.md 2). */
export function signAccessToken(app: App, project: Project, userId: string, ttlMs: number): string {
  const { kid, key } = requireSigningKey(app, project);
  const iat = Math.floor(app.clock.now() / 1000);
  const claims = {
    sub: userId,
    userId,
    projectId: project._id.toHexString(),
    iat,
    exp: iat + Math.floor(ttlMs / 1000),
    jti: randomUUID(),
  };
  return signToken(claims, kid, key);
}
