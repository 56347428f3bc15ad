import type { App } from '../../app.js';
import type { Project, TokenSecret } from './project.js';
import { changeProjectList } from './project-store.js';
import { generateTokenSecret, isLive } from './token-secret.js';

/**
 * Signs new access tokens with a new secret; older ones verify for another `graceMs` (0 = every access token given out
 * so far ends now). Safe beside another rotation.
 */
export async function rotateTokenSecret(app: App, project: Project, graceMs: number): Promise<TokenSecret> {
  const secrets = await changeProjectList(app, project, 'tokenSecrets', (current, nowMs) => {
    const end = new Date(nowMs + graceMs);
    const older = current
      .filter((secret) => isLive(secret, nowMs))
      .map((secret) => (secret.expiresAt && secret.expiresAt < end ? secret : { ...secret, expiresAt: end }));
    return [...older, generateTokenSecret(app, project._id)];
  });
  return secrets.at(-1)!;
}
