import { type RouteList, plain, route, type Route } from '../../http/routes/route.js';
import { ADMINISTRATION_ROUTES } from './administration-routes.js';
import { CODE_ROUTES } from './code-routes.js';
import { INVITE_ROUTES } from './invite-routes.js';
import { MFA_ROUTES } from './mfa-routes.js';
import { OWN_ACCOUNT_ROUTES } from './own-account-routes.js';
import { PASSKEY_ROUTES } from './passkey-routes.js';
import { PROFILE_ROUTES } from './profile-routes.js';
import { SESSION_ROUTES } from './session-routes.js';
import { SOCIAL_ROUTES } from './social-routes.js';
import { arrayOf, object, oneOf, TEXT } from '../../platform/schema/schema.js';
import { KEY_IN_QUERY } from '../access/key-access.js';
import { USER, presentUser } from './accounts/present-user.js';
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
const TOKEN_ROUTES: readonly Route[] = [
  route('GET /api/userAuth/jwks.json', {
    id: 'getTokenKeys',
    summary: 'Get the public keys of access tokens (JWKS)',
    description:
      'Empty unless the project signs with ES256. Rotated keys stay until their last token has expired. Fetch again for an unknown `kid`.',
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
    summary: 'Verify an access token on your server',
    description:
      'Like `me`, but rejects sessions that must set up MFA first. Ended sessions and disabled accounts are rejected immediately.',
    access: SIGNED_IN,
    rate: 'plain',
    answers: plain(USER, 'The user itself'),
    handle({ ctx, user }) {
      ctx.set('Cache-Control', 'no-store');
      return presentUser(user);
    },
  }),
];

/**
 * End-user accounts (rest-api.md 4.1; decisions.md 2). Any live key of the project opens every route; the secret key
 * may also set what users may not.
 */
export const USER_ROUTES: RouteList = {
  prefix: '/api/userAuth',
  tag: 'Users',
  rate: 'sign-in',
  keyIn: 'header',
  about:
    'End users of a project: sign-up, sign-in, sessions, profiles. The secret key may set fields that are protected from users.',
  tags: {
    'Sign-in': 'Codes by mail, and providers such as Google.',
    'Factors and passkeys': 'Second factors and passkeys of the signed-in user.',
    'User administration': 'Invitations, and what the secret key does with accounts.',
  },
  routes: [
    ...SESSION_ROUTES,
    ...PROFILE_ROUTES,
    ...tagged('Sign-in', [...CODE_ROUTES, ...SOCIAL_ROUTES]),
    ...tagged('Factors and passkeys', [...MFA_ROUTES, ...PASSKEY_ROUTES]),
    ...tagged('User administration', INVITE_ROUTES),
    ...OWN_ACCOUNT_ROUTES,
    ...TOKEN_ROUTES,
    ...tagged('User administration', ADMINISTRATION_ROUTES),
  ],
};

function tagged(tag: string, routes: readonly Route[]): Route[] {
  return routes.map((route) => ({ ...route, tag }));
}
