import { plain, route, type Route } from '../../http/routes/route.js';
import { arrayOf, object, oneOf, TEXT } from '../../platform/schema/schema.js';
import { KEY_IN_QUERY } from '../access/key-access.js';
import { USER } from './accounts/describe-user.js';
import { presentUser } from './accounts/present-user.js';
import { SIGNED_IN } from './sessions/signed-in-access.js';
import { listPublicKeys } from '../projects/token-secret.js';

/** As RFC 7517 names the parts of a key. */
const PUBLIC_KEY = object({
  kid: TEXT,
  alg: oneOf('ES256'),
  use: oneOf('sig'),
  kty: oneOf('EC'),
  crv: oneOf('P-256'),
  x: TEXT,
  y: TEXT,
});

/** What other servers check access tokens by (accounts.md 8). */
export const TOKEN_ROUTES: readonly Route[] = [
  route('GET /api/userAuth/jwks.json', {
    id: 'getTokenKeys',
    summary: 'The public keys that access tokens are checked by',
    description:
      'Where the project signs with ES256; an empty list otherwise. A key that was rotated stays until the last token it signed has expired. Ask again for a `kid` that is not there.',
    access: KEY_IN_QUERY,
    rate: 'plain',
    answers: plain(object({ keys: arrayOf(PUBLIC_KEY) }), 'A JSON Web Key Set'),
    handle({ app, ctx, project }) {
      ctx.set('Cache-Control', 'public, max-age=60');
      return { keys: listPublicKeys(app, project) };
    },
  }),
  route('GET /api/userAuth/verify', {
    id: 'verifyToken',
    summary: 'Whose access token it is, for servers of your own',
    description:
      'As `me`, but refuses a session that may only enrol a second factor. An own server that asks here knows at once that a session has ended or an account is disabled.',
    access: SIGNED_IN,
    rate: 'plain',
    answers: plain(USER, 'The user itself'),
    handle({ ctx, user }) {
      ctx.set('Cache-Control', 'no-store');
      return presentUser(user);
    },
  }),
];
