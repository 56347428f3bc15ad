import { forbidden } from '../../errors.js';
import { done, listOf, naming, ok, plain, route, type Route, wholeList } from '../../http/routes/route.js';
import { clientNetwork } from '../../http/requests/client-address.js';
import { arrayOf, FLAG, MOMENT, object, oneOf, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { presentDuration } from '../../config/setting-readers.js';
import { endUserOf } from '../access/operator-access.js';
import { deleteUser } from './accounts/delete-user.js';
import { sendAskedCode } from './codes/send-code.js';
import { askerOf } from './codes/mail-allowance.js';
import { STEP_UP_BODY, STEP_UP_ERRORS, requireStepUp, stepUp } from './step-up/require-step-up.js';
import { clearRefreshCookie } from './sessions/deliver-tokens.js';
import { endSession, listMySessions } from './sessions/end-sessions.js';
import { AUTH_METHODS, authenticationOf, type Session } from './sessions/session.js';
import { ENROLLING, SIGNED_IN } from './sessions/signed-in-access.js';

const OWN_SESSION = object(
  {
    id: TEXT,
    createdAt: MOMENT,
    usedAt: MOMENT,
    expiresAt: MOMENT,
    place: {
      ...orNull(TEXT),
      description: 'The client’s network: an IPv4 address, or the first half of an IPv6 address.',
    },
    userAgent: orNull(TEXT),
    current: { ...FLAG, description: 'Whether it is the session of this request.' },
    amr: { ...arrayOf(oneOf(...AUTH_METHODS)), description: 'Authentication methods of the session.' },
  },
  'MySession',
);

/** Enough to know the own devices by; the last part of an address is left out. */
function placeOf({ ip }: Session): string | null {
  if (ip === '') return null;
  const network = clientNetwork(ip);
  return /^\d+(\.\d+){3}$/.test(network) ? network.replace(/\d+$/, '0/24') : network;
}

const presentOwnSession = (session: Session, current: string | null) => ({
  id: session._id,
  createdAt: session.createdAt.toISOString(),
  usedAt: session.usedAt.toISOString(),
  expiresAt: session.expiresAt.toISOString(),
  place: placeOf(session),
  userAgent: session.userAgent,
  current: session._id === current,
  amr: [...authenticationOf(session).amr],
});

/** What users do about their own sessions and proofs (accounts.md 2, 4). */
export const OWN_ACCOUNT_ROUTES: readonly Route[] = [
  route('POST /api/userAuth/step-up', {
    id: 'stepUp',
    summary: 'Re-authenticate in the current session (step-up)',
    description:
      'Allows requests that return `STEP_UP_REQUIRED` for ten minutes. The refresh token stays the same; the new access token has updated `amr` and `auth_time`.',
    access: ENROLLING,
    body: STEP_UP_BODY,
    example: { currentPassword: 'correct horse battery' },
    answers: plain(
      object({ success: oneOf(true), accessToken: TEXT, token: text({ deprecated: true }), expiresIn: TEXT }),
      'A new access token',
    ),
    errors: STEP_UP_ERRORS,
    async handle({ app, ctx, project, user, session, body }) {
      ctx.set('Cache-Control', 'no-store');
      const accessToken = await stepUp(app, project, { user, session, ip: ctx.ip }, body);
      const expiresIn = presentDuration(app.config.accessTokenTtlMs);
      return { success: true as const, accessToken, token: accessToken, expiresIn };
    },
  }),
  route('POST /api/userAuth/step-up/code', {
    id: 'sendStepUpCode',
    summary: 'Send a re-authentication code by email',
    access: ENROLLING,
    answers: done('A code is on its way to the address of the account'),
    errors: { 403: ['EMAIL_UNVERIFIED'], 429: ['CODE_SENT_RECENTLY'] },
    async handle({ app, ctx, caller, project, user }) {
      if (user.email === undefined) throw forbidden('EMAIL_UNVERIFIED', 'The account has no address yet');
      await sendAskedCode(app, project, 'login', user.email, { asker: askerOf(app, caller, ctx, user.email) });
    },
  }),
  route('DELETE /api/userAuth/me', {
    id: 'deleteMe',
    summary: 'Delete your account',
    description:
      'Permanently deletes account, sessions and linked identities. `onDelete` of references to the user decides what happens to documents; by default they stay. Needs re-authentication within the last ten minutes.',
    access: SIGNED_IN,
    rate: 'plain',
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: done('The account is deleted'),
    errors: { ...STEP_UP_ERRORS, 404: ['USER_NOT_FOUND'], 409: ['DOCUMENT_REFERRED_TO'] },
    async handle({ app, ctx, caller, project, user, session, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      await deleteUser(app, project, user, { caller: endUserOf(caller) });
      clearRefreshCookie(app, ctx, project);
    },
  }),
  route('GET /api/userAuth/sessions', {
    id: 'listMySessions',
    summary: 'List sessions of the user',
    description: 'Last used first; at most 100.',
    access: SIGNED_IN,
    rate: 'plain',
    answers: ok(listOf(OWN_SESSION), 'Sessions'),
    async handle({ app, ctx, project, user, session }) {
      ctx.set('Cache-Control', 'no-store');
      return wholeList((await listMySessions(app, project, user)).map((each) => presentOwnSession(each, session)));
    },
  }),
  route('DELETE /api/userAuth/sessions/:session', {
    id: 'endMySession',
    summary: 'End a session, `others` or `all`',
    description: 'Other sessions than the current one need re-authentication within the last ten minutes.',
    access: SIGNED_IN,
    rate: 'plain',
    params: { session: naming('Id of the session, `others` or `all`', 'SESSION_NOT_FOUND') },
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: ok(object({ ended: WHOLE }), 'Sessions ended'),
    errors: STEP_UP_ERRORS,
    async handle({ app, ctx, project, user, session, params: { session: which }, body }) {
      if (which !== session) await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      return { ended: await endSession(app, project, user, which, session) };
    },
  }),
];
