import type { Context } from 'koa';
import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import { readJson } from '../../http/read-body.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import type { Caller } from '../access/caller.js';
import { callerOf, requireKey } from '../access/require-key.js';
import { changePassword } from './change-password.js';
import { readTexts } from './credentials.js';
import { clearRefreshCookie, clientOf, deliverTokens, readRefreshToken } from './deliver-tokens.js';
import { requirePublicProfile } from './find-public-profile.js';
import { logIn } from './log-in.js';
import { logOut } from './log-out.js';
import type { FieldSetter } from './new-user.js';
import { openSession } from './open-session.js';
import { presentUser } from './present-user.js';
import { refreshSession } from './refresh-session.js';
import { requireSignedIn } from './require-signed-in.js';
import { resetPassword } from './reset-password.js';
import { addSocialRoutes } from './social-routes.js';
import { sendCode } from './send-code.js';
import { signUp } from './sign-up.js';
import { updateProfile } from './update-profile.js';
import { verifyEmail } from './verify-email.js';

const PREFIX = '/api/userAuth';

/** What is said about a mailed code, whether or not the address has an account. */
const CODE_SENT = 'If the address belongs to an account, a code is on its way.';

/** End-user accounts (rest-api.md 4.1; decisions.md 2). Any live key of the project opens every route; the secret key may also set what users may not. */
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
    try {
      const tokens = await refreshSession(app, project, readRefreshToken(ctx, project), clientOf(ctx));
      ctx.body = { success: true, ...deliverTokens(app, ctx, project, tokens) };
    } catch (error) {
      if (error instanceof AppError && error.kind === 'unauthenticated') clearRefreshCookie(app, ctx, project);
      throw error;
    }
  });

  router.post('/logout', key, async (ctx) => {
    const { project } = callerOf(ctx);
    await logOut(app, project, readRefreshToken(ctx, project));
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
    const { user } = await requireSignedIn(app, caller);
    const updated = await updateProfile(app, caller.project, user, ctx.request.body, setterOf(caller));
    ctx.body = { success: true, data: presentUser(updated), message: 'Profile updated' };
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
    await verifyEmail(app, callerOf(ctx).project, readTexts(ctx.request.body, ['email', 'otp']));
    ctx.body = done('E-mail address confirmed');
  });

  router.post('/resend-verification-otp', key, json, async (ctx) => {
    const { email } = readTexts(ctx.request.body, ['email']);
    await sendCode(app, callerOf(ctx).project, 'verification', email);
    ctx.body = done(CODE_SENT);
  });

  router.get('/public/:username', key, async (ctx) => {
    ctx.body = await requirePublicProfile(app, callerOf(ctx).project, ctx.params.username!);
  });

  addSocialRoutes(router, app);
  return { prefix: PREFIX, router };
}

function setterOf(caller: Pick<Caller, 'key'>): FieldSetter {
  return caller.key.type === 'secret' ? 'project' : 'user';
}

const done = (message: string) => ({ success: true, message });
