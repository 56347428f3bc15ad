import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import type { Project, TokenSecret } from './project.js';
import { projectStore } from './project-store.js';
import { generateTokenSecret, isLive } from './token-secret.js';

/**
 * Signs new access tokens with a new secret; older ones verify for another `graceMs` (0 = every access token given out
 * so far ends now). Safe beside another rotation.
 */
export async function rotateTokenSecret(app: App, project: Project, graceMs: number): Promise<TokenSecret> {
  for (;;) {
    const current = await projectStore(app).findOne({ _id: project._id, state: 'active' });
    if (!current) throw missing('PROJECT_NOT_FOUND', 'The project no longer exists');
    const nowMs = app.clock.now();
    const end = new Date(nowMs + graceMs);
    const older = current.tokenSecrets
      .filter((secret) => isLive(secret, nowMs))
      .map((secret) => (secret.expiresAt && secret.expiresAt < end ? secret : { ...secret, expiresAt: end }));
    const newest = generateTokenSecret(app, project._id);
    const { matchedCount } = await projectStore(app).updateOne(
      { _id: project._id, state: 'active', tokenSecrets: current.tokenSecrets },
      { $set: { tokenSecrets: [...older, newest], updatedAt: new Date(nowMs) } },
    );
    if (matchedCount === 0) continue;
    app.cache.forgetAll('callers');
    return newest;
  }
}
