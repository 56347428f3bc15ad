import type { RouteList } from '../../http/routes/route.js';
import {
  requestPasswordResetRoute,
  resendVerificationRoute,
  resetPasswordRoute,
  verifyEmailRoute,
} from './code-routes.js';
import {
  changePasswordRoute,
  getMeRoute,
  getPublicProfileRoute,
  listIdentitiesRoute,
  putPasswordRoute,
  putProfileRoute,
  unlinkIdentityRoute,
  updateProfileRoute,
} from './profile-routes.js';
import { logInRoute, logOutRoute, refreshRoute, signUpRoute } from './session-routes.js';
import { exchangeSocialRoute, finishSocialRoute, startSocialRoute } from './social-routes.js';

/**
 * End-user accounts (rest-api.md 4.1; decisions.md 2). Any live key of the project opens every route; the secret key
 * may also set what users may not.
 */
export const USER_ROUTES: RouteList = {
  prefix: '/api/userAuth',
  tag: 'Users',
  about:
    'End users of a project: sign-up, sign-in, sessions, profiles. The secret key may set fields that are protected from users.',
  routes: [
    signUpRoute,
    logInRoute,
    refreshRoute,
    logOutRoute,
    getMeRoute,
    updateProfileRoute,
    putProfileRoute,
    changePasswordRoute,
    putPasswordRoute,
    requestPasswordResetRoute,
    resetPasswordRoute,
    verifyEmailRoute,
    resendVerificationRoute,
    listIdentitiesRoute,
    unlinkIdentityRoute,
    getPublicProfileRoute,
    startSocialRoute,
    finishSocialRoute,
    exchangeSocialRoute,
  ],
};
