import { done, route, say, type Route } from '../../http/routes/route.js';
import { MAX_PASSWORD_BYTES } from '../../platform/schema/text-forms.js';
import { openObject, text } from '../../platform/schema/schema.js';
import { sessionOf } from '../access/caller.js';
import { ANY_KEY, ASKED_KEY } from '../access/key-access.js';
import { EMAIL, NEW_PASSWORD, presentUser } from './accounts/present-user.js';
import { logInByCode, sendLoginCode } from './codes/log-in-by-code.js';
import { resetPassword } from './codes/reset-password.js';
import { resendCodes, sendAskedCode } from './codes/send-code.js';
import { askerOf } from './codes/mail-allowance.js';
import { verifyEmail } from './codes/verify-email.js';
import { normaliseEmail } from './credentials.js';
import { clientOf, deliverTokens, REFRESH_MODE } from './sessions/deliver-tokens.js';
import { signedIn } from './sign-in/complete-sign-in.js';

const OTP = text({ minLength: 1, maxBytes: MAX_PASSWORD_BYTES, wellFormed: true, examples: ['123456'] });

/** The same whether or not the address has an account. */
const CODE_SENT = done('If the address belongs to an account, a code is on its way.');

const CONFIRMED = 'E-mail address confirmed';
/** Without the session of the sign-up it is unknown who chose the password. */
const CONFIRMED_WITHOUT_PASSWORD =
  'E-mail address confirmed. It was confirmed outside the session of the sign-up, so the account has no password now: set one with request-password-reset';

/** Within a minute of the last one, whether or not the address has an account. */
const SENT_RECENTLY = { 429: ['CODE_SENT_RECENTLY'] };

const CODE_LOGIN_OFF = { 403: ['CODE_LOGIN_OFF'] };

/** Routes of mailed codes. */
export const CODE_ROUTES: readonly Route[] = [
  route('POST /api/userAuth/login/code', {
    id: 'sendLoginCode',
    bodySize: 'small',
    summary: 'Send a sign-in code by email',
    description:
      'Needs the project’s setting `codeLogin`. With `redirect`, one of the project’s URLs, the email links to that page with address and code after `#`, which the page posts.',
    access: ANY_KEY,
    body: openObject({ email: EMAIL, 'redirect?': text({ maxLength: 500 }) }),
    example: { email: 'ada@example.com' },
    answers: CODE_SENT,
    errors: { 400: ['VALIDATION_FAILED', 'REDIRECT_NOT_ALLOWED'], ...CODE_LOGIN_OFF, ...SENT_RECENTLY },
    handle({ app, ctx, caller, project, body: { email: given, redirect } }) {
      const email = normaliseEmail(given);
      return sendLoginCode(app, project, email, { asker: askerOf(app, caller, ctx, email), redirect });
    },
  }),
  route('POST /api/userAuth/login/code/verify', {
    id: 'logInByCode',
    bodySize: 'small',
    summary: 'Sign in with an email code',
    description:
      'Confirms the address. If the account was never confirmed, its password, sessions and identities are removed. With `codeLogin: signup`, a new address gets an account.',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    body: openObject({ email: EMAIL, otp: OTP }),
    example: { email: 'ada@example.com', otp: '123456' },
    answers: signedIn(),
    errors: {
      400: ['VALIDATION_FAILED', 'OTP_INVALID'],
      401: ['MFA_REQUIRED', 'INVALID_CREDENTIALS'],
      403: ['CODE_LOGIN_OFF', 'ACCOUNT_DISABLED', 'QUOTA_EXCEEDED'],
      409: ['CHANGED_MEANWHILE', 'DUPLICATE_VALUE'],
    },
    async handle({ app, ctx, caller, project, body: { email, otp } }) {
      const input = { email: normaliseEmail(email), otp };
      const asker = askerOf(app, caller, ctx, input.email);
      const { user, tokens } = await logInByCode(app, project, input, clientOf(ctx), asker);
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('POST /api/userAuth/request-password-reset', {
    id: 'requestPasswordReset',
    bodySize: 'small',
    summary: 'Send a password reset code by email',
    access: ANY_KEY,
    body: openObject({ email: EMAIL }),
    example: { email: 'ada@example.com' },
    answers: CODE_SENT,
    errors: { 400: ['VALIDATION_FAILED'], 403: ['QUOTA_EXCEEDED'], ...SENT_RECENTLY },
    handle({ app, ctx, caller, project, body }) {
      const email = normaliseEmail(body.email);
      return sendAskedCode(app, project, 'password-reset', email, { asker: askerOf(app, caller, ctx, email) });
    },
  }),
  route('POST /api/userAuth/reset-password', {
    id: 'resetPassword',
    bodySize: 'small',
    summary: 'Reset the password with an email code',
    description: 'Ends all sessions.',
    access: ANY_KEY,
    body: openObject({ email: EMAIL, otp: OTP, newPassword: NEW_PASSWORD }),
    example: { email: 'ada@example.com', otp: '123456', newPassword: 'staple correct horse' },
    answers: done('Password changed; please sign in'),
    errors: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'], 503: ['BUSY'] },
    handle({ app, ctx, caller, project, body }) {
      const email = normaliseEmail(body.email);
      return resetPassword(app, project, { ...body, email }, clientOf(ctx), askerOf(app, caller, ctx, email));
    },
  }),
  route('POST /api/userAuth/verify-email', {
    id: 'verifyEmail',
    bodySize: 'small',
    summary: 'Confirm an email address with a code',
    description:
      'The account’s address, or the pending one of update-profile, which replaces it. Send the access token of the sign-up as bearer to keep that session and the password. Without it, password, sessions, MFA, passkeys and linked identities are removed, because someone else may have signed up with the address. Set a new password with `request-password-reset`. Anonymous users get 409 `EMAIL_TAKEN` with a `mergeToken` in `details` if the address has an account.',
    access: ANY_KEY,
    body: openObject({ email: EMAIL, otp: OTP }),
    example: { email: 'ada@example.com', otp: '123456' },
    answers: done(CONFIRMED),
    errors: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'], 409: ['EMAIL_TAKEN'] },
    async handle({ app, ctx, caller, project, body }) {
      const input = { ...body, email: normaliseEmail(body.email) };
      const asker = askerOf(app, caller, ctx, input.email);
      const { passwordEnded } = await verifyEmail(app, project, input, sessionOf(caller), asker);
      return say(undefined, passwordEnded ? CONFIRMED_WITHOUT_PASSWORD : CONFIRMED);
    },
  }),
  route('POST /api/userAuth/resend-verification-otp', {
    id: 'resendVerification',
    bodySize: 'small',
    summary: 'Send the confirmation code again',
    access: ANY_KEY,
    body: openObject({ email: EMAIL }),
    example: { email: 'ada@example.com' },
    answers: CODE_SENT,
    errors: { 400: ['VALIDATION_FAILED'], 403: ['QUOTA_EXCEEDED'], ...SENT_RECENTLY },
    handle({ app, ctx, caller, project, body }) {
      const email = normaliseEmail(body.email);
      return resendCodes(app, project, email, askerOf(app, caller, ctx, email));
    },
  }),
];
