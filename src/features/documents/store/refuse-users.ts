import { forbidden } from '../../../errors.js';
import { decodePart } from '../../../http/routes/mount-routes.js';

/**
 * 403 USERS_BLOCKED for every path under `prefix` whose first part begins with `users`, whatever its spelling, method
 * or key (rest-api.md 2.6). Works on the decoded, lower-cased name, because the router decodes names after matching.
 */
export function refuseUsers(path: string, prefix: string): void {
  const first = path.charAt(prefix.length + 1);
  // A part that begins with another letter, written plainly, is another name.
  if (first !== 'u' && first !== 'U' && first !== '%') return;
  const name = path.slice(prefix.length + 1);
  if (decodePart(name).toLowerCase().startsWith('users')) {
    throw forbidden('USERS_BLOCKED', 'The users collection is reached through /api/userAuth only');
  }
}
