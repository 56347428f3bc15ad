import { forbidden } from '../../errors.js';
import { decodePart } from '../../http/routes/mount-routes.js';
import { naming, type RouteList } from '../../http/routes/route.js';
import { text } from '../../platform/schema/schema.js';
import { authenticateKey } from '../access/require-key.js';
import { READ_ROUTES } from './read-routes.js';
import { WRITE_ROUTES } from './write-routes.js';

const PREFIX = '/api/data';
const COLLECTION_NAME = text({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$', examples: ['posts'] });

/**
 * Documents of registered collections (rest-api.md 4.2). Every path below `/api/data` needs a key before anything else
 * is said about it.
 */
export const DOCUMENT_ROUTES: RouteList = {
  prefix: PREFIX,
  tag: 'Documents',
  rate: 'plain',
  keyIn: 'header',
  about: 'JSON documents of registered collections. The collection `users` is reached through `/api/userAuth` alone.',
  params: {
    collectionName: naming('Name of a registered collection', 'COLLECTION_NOT_FOUND', COLLECTION_NAME),
    id: {
      description: 'Id of the document',
      schema: text({ pattern: '^[0-9a-fA-F]{24}$' }),
      errors: { 400: ['INVALID_ID'], 404: ['DOCUMENT_NOT_FOUND'] },
    },
  },
  guard: (app) => (ctx) => {
    const settling = authenticateKey(app, ctx);
    if (settling) return settling.then(() => rejectUsers(ctx.path));
    rejectUsers(ctx.path);
    return null;
  },
  routes: [...READ_ROUTES, ...WRITE_ROUTES],
};

/**
 * 403 USERS_BLOCKED for every path whose first part begins with `users`, whatever its spelling, method or key
 * (rest-api.md 2.6). Works on the decoded, lower-cased name, because the router decodes names after matching.
 */
function rejectUsers(path: string): void {
  const first = path.charAt(PREFIX.length + 1);
  // A part that begins with another letter, written plainly, is another name.
  if (first !== 'u' && first !== 'U' && first !== '%') return;
  const name = decodePart(path.slice(PREFIX.length + 1)).toLowerCase();
  if (name.startsWith('users')) {
    throw forbidden('USERS_BLOCKED', 'The users collection is reached through /api/userAuth only');
  }
}
