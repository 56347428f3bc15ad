import type { App } from '../../app.js';
import type { Project, TokenSecret } from './project.js';
import { changeProjectList } from './project-store.js';
import { tokenAlgorithmOf } from './sign-in-settings.js';
import { withNewSecret } from './token-secret.js';

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
