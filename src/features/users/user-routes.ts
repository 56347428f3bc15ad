import type { RouteList } from '../../http/routes/route.js';
import { ADMINISTRATION_ROUTES } from './administration-routes.js';
import { CODE_ROUTES } from './code-routes.js';
import { INVITE_ROUTES } from './invite-routes.js';
import { MFA_ROUTES } from './mfa-routes.js';
import { OWN_ACCOUNT_ROUTES } from './own-account-routes.js';
import { PASSKEY_ROUTES } from './passkey-routes.js';
import { PROFILE_ROUTES } from './profile-routes.js';
import { SESSION_ROUTES } from './session-routes.js';
import { SOCIAL_ROUTES } from './social-routes.js';
import { TOKEN_ROUTES } from './token-routes.js';

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
  routes: [
    ...SESSION_ROUTES,
    ...PROFILE_ROUTES,
    ...CODE_ROUTES,
    ...SOCIAL_ROUTES,
    ...MFA_ROUTES,
    ...PASSKEY_ROUTES,
    ...INVITE_ROUTES,
    ...OWN_ACCOUNT_ROUTES,
    ...TOKEN_ROUTES,
    ...ADMINISTRATION_ROUTES,
  ],
};
