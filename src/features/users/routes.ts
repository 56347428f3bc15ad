import type { Context } from 'koa';
import type { App } from '../../app.js';
import { AppError, unauthenticated } from '../../errors.js';
import { readJson } from '../../http/requests/read-body.js';
import { createRouter, type RouteGroup } from '../../http/routes/mount-routes.js';
import { HIDDEN_FIELD } from '../collections/fields/field.js';
import type { Caller } from '../access/caller.js';
import { callerOf, requireKey } from '../access/require-key.js';
import { changePassword } from './profile/change-password.js';
import { readTexts } from './credentials.js';
import { clearRefreshCookie, clientOf, deliverTokens, readRefreshToken } from './sessions/deliver-tokens.js';
import { requirePublicProfile } from './accounts/find-public-profile.js';
import { logIn } from './sessions/log-in.js';
import { logOut } from './sessions/log-out.js';
import type { FieldSetter } from './accounts/new-user.js';
import { openSession } from './sessions/open-session.js';
import { listIdentities, presentIdentity, unlinkIdentity } from './accounts/linked-identity.js';
import { presentUser } from './accounts/present-user.js';
import { refreshSession } from './sessions/refresh-session.js';
import { requireSignedIn } from './sessions/require-signed-in.js';
import { resetPassword } from './codes/reset-password.js';
import { addSocialRoutes } from './social-routes.js';
import { resendCodes, sendCode } from './codes/send-code.js';
import { signUp } from './sign-up.js';
import { updateProfile } from './profile/update-profile.js';
import { verifyEmail } from './codes/verify-email.js';

const PREFIX = '/api/userAuth';

/** What is said about a mailed code, whether or not the address has an account. */
const CODE_SENT = 'If the address belongs to an account, a code is on its way.';

const EMAIL_PENDING = 'Profile updated; the new e-mail address counts once the code mailed to it is confirmed';
const EMAIL_PENDING_UNMAILED =
  'Profile updated; no code was mailed to the new e-mail address, as one was a moment ago or too many were today: ask again later';

/**
 * End-user accounts (rest-api.md 4.1; decisions.md 2). Any live key of the project opens every route; the secret key
 * may also set what users may not.
 */
export function userRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const key = requireKey(app);
  const json = readJson();

  router.post('/signup', key, json, async (ctx) => {
    const { project, ...caller } = callerOf(ctx);
    const user = await signUp(app, project, ctx.request.body, setterOf(caller));
    const tokens = await openSession(app, project, user, clientOf(ctx));
    ctx.status = 201;
    ctx.body = { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
  });

  router.post('/login', key, json, async (ctx) => {
    const { project } = callerOf(ctx);
    const input = readTexts(ctx.request.body, ['email', 'password']);
    const { user, tokens } = await logIn(app, project, input, clientOf(ctx));
    ctx.body = { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
  });

  router.post('/refresh-token', key, async (ctx) => {
    const { project } = callerOf(ctx);
    const presented = readRefreshToken(app, ctx, project);
    if (presented.by === null && ctx.get('sec-fetch-site') === 'cross-site') throw cookieStayedBehind();
    try {
      const tokens = await refreshSession(app, project, presented.token, clientOf(ctx));
      ctx.body = { success: true, ...deliverTokens(app, ctx, project, tokens, presented.by) };
    } catch (error) {
      if (error instanceof AppError && error.kind === 'unauthenticated') clearRefreshCookie(app, ctx, project);
      throw error;
    }
  });

  router.post('/logout', key, async (ctx) => {
    const { project } = callerOf(ctx);
    await logOut(app, project, readRefreshToken(app, ctx, project).token);
    clearRefreshCookie(app, ctx, project);
    ctx.body = done('Signed out');
  });

  router.get('/me', key, async (ctx) => {
    const { user } = await requireSignedIn(app, callerOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = presentUser(user);
  });

  const update = async (ctx: Context): Promise<void> => {
    const caller = callerOf(ctx);
    const { user, session } = await requireSignedIn(app, caller);
    const editor = { setter: setterOf(caller), ip: ctx.ip, session };
    const { user: updated, mailed } = await updateProfile(app, caller.project, user, ctx.request.body, editor);
    ctx.body = {
      success: true,
      data: presentUser(updated),
      ...(mailed !== undefined && { pendingEmail: updated[HIDDEN_FIELD].pendingEmail?.address ?? null }),
      message: mailed === undefined ? 'Profile updated' : mailed ? EMAIL_PENDING : EMAIL_PENDING_UNMAILED,
    };
  };
  router.patch('/update-profile', key, json, update);
  router.put('/update-profile', key, json, update);

  const change = async (ctx: Context): Promise<void> => {
    const caller = callerOf(ctx);
    const { user, session } = await requireSignedIn(app, caller);
    const input = readTexts(ctx.request.body, ['currentPassword', 'newPassword']);
    await changePassword(app, caller.project, user, input, { ip: ctx.ip, session });
    ctx.body = done('Password changed; all other sessions have ended');
  };
  router.post('/change-password', key, json, change);
  router.put('/change-password', key, json, change);

  router.post('/request-password-reset', key, json, async (ctx) => {
    const { email } = readTexts(ctx.request.body, ['email']);
    await sendCode(app, callerOf(ctx).project, 'password-reset', email);
    ctx.body = done(CODE_SENT);
  });

  router.post('/reset-password', key, json, async (ctx) => {
    const input = readTexts(ctx.request.body, ['email', 'otp', 'newPassword']);
    await resetPassword(app, callerOf(ctx).project, input, ctx.ip);
    ctx.body = done('Password changed; please sign in');
  });

  router.post('/verify-email', key, json, async (ctx) => {
    const { project, bearer } = callerOf(ctx);
    const session = bearer.state === 'user' ? (bearer.session ?? null) : null;
    await verifyEmail(app, project, readTexts(ctx.request.body, ['email', 'otp']), session);
    ctx.body = done('E-mail address confirmed');
  });

  router.post('/resend-verification-otp', key, json, async (ctx) => {
    const { email } = readTexts(ctx.request.body, ['email']);
    await resendCodes(app, callerOf(ctx).project, email);
    ctx.body = done(CODE_SENT);
  });

  router.get('/identities', key, async (ctx) => {
    const { project } = callerOf(ctx);
    const { user } = await requireSignedIn(app, callerOf(ctx));
    const items = (await listIdentities(app, project, user)).map(presentIdentity);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Identities' };
  });

  router.delete('/identities/:provider', key, async (ctx) => {
    const { project } = callerOf(ctx);
    const { user, session } = await requireSignedIn(app, callerOf(ctx));
    await unlinkIdentity(app, project, user, ctx.params.provider!, session);
    ctx.body = done('Identity unlinked; all other sessions have ended');
  });

  router.get('/public/:username', key, async (ctx) => {
    ctx.body = await requirePublicProfile(app, callerOf(ctx).project, ctx.params.username!);
  });

  addSocialRoutes(router, app);
  return { prefix: PREFIX, router };
}

/** Without a word about it, developers look for the cookie in vain: `localhost` and `127.0.0.1` are two sites. */
function cookieStayedBehind(): AppError {
  return unauthenticated(
    'REFRESH_INVALID',
    'No refresh token came with this request. Browsers keep cookies from pages of another site (localhost and 127.0.0.1 are two): call the service by the page’s own host name, with credentials, or send x-refresh-token',
  );
}

function setterOf(caller: Pick<Caller, 'key'>): FieldSetter {
  return caller.key.type === 'secret' ? 'project' : 'user';
}

const done = (message: string) => ({ success: true, message });
