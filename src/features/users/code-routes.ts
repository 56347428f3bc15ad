import { done, route, type Route } from '../../http/routes/route.js';
import { MAX_PASSWORD_BYTES } from '../../platform/secrets/password.js';
import { openObject, text } from '../../platform/schema/schema.js';
import { sessionOf } from '../access/caller.js';
import { ANY_KEY } from '../access/key-access.js';
import { EMAIL, NEW_PASSWORD } from './accounts/describe-user.js';
import { resetPassword } from './codes/reset-password.js';
import { resendCodes, sendCode } from './codes/send-code.js';
import { verifyEmail } from './codes/verify-email.js';
import { normaliseEmail } from './credentials.js';
import { clientOf } from './sessions/deliver-tokens.js';

const OTP = text({ minLength: 1, maxBytes: MAX_PASSWORD_BYTES, wellFormed: true, examples: ['123456'] });

/** The same whether or not the address has an account. */
const CODE_SENT = done('If the address belongs to an account, a code is on its way.');

/** Routes of mailed codes. */
export const CODE_ROUTES: readonly Route[] = [
  route('POST /api/userAuth/request-password-reset', {
    id: 'requestPasswordReset',
    bodySize: 'small',
    summary: 'Have a code mailed that resets the password',
    access: ANY_KEY,
    body: openObject({ email: EMAIL }),
    example: { email: 'ada@example.com' },
    answers: CODE_SENT,
    refuses: { 400: ['VALIDATION_FAILED'] },
    handle: ({ app, project, body }) => sendCode(app, project, 'password-reset', normaliseEmail(body.email)),
  }),
  route('POST /api/userAuth/reset-password', {
    id: 'resetPassword',
    bodySize: 'small',
    summary: 'Set a new password with a mailed code',
    description: 'Ends every session.',
    access: ANY_KEY,
    body: openObject({ email: EMAIL, otp: OTP, newPassword: NEW_PASSWORD }),
    example: { email: 'ada@example.com', otp: '123456', newPassword: 'staple correct horse' },
    answers: done('Password changed; please sign in'),
    refuses: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'], 503: ['BUSY'] },
    handle({ app, ctx, project, body }) {
      return resetPassword(app, project, { ...body, email: normaliseEmail(body.email) }, clientOf(ctx));
    },
  }),
  route('POST /api/userAuth/verify-email', {
    id: 'verifyEmail',
    bodySize: 'small',
    summary: 'Confirm the e-mail address with a mailed code',
    description:
      'The account’s own address, or the pending one of update-profile, which then takes its place. Whoever confirms an address for the first time owns the account: linked identities, sessions and tokens end, but for the session whose access token comes along as bearer.',
    access: ANY_KEY,
    body: openObject({ email: EMAIL, otp: OTP }),
    example: { email: 'ada@example.com', otp: '123456' },
    answers: done('E-mail address confirmed'),
    refuses: { 400: ['VALIDATION_FAILED', 'OTP_INVALID'], 409: ['EMAIL_TAKEN'] },
    handle({ app, caller, project, body }) {
      return verifyEmail(app, project, { ...body, email: normaliseEmail(body.email) }, sessionOf(caller));
    },
  }),
  route('POST /api/userAuth/resend-verification-otp', {
    id: 'resendVerification',
    bodySize: 'small',
    summary: 'Have the code mailed again',
    access: ANY_KEY,
    body: openObject({ email: EMAIL }),
    example: { email: 'ada@example.com' },
    answers: CODE_SENT,
    refuses: { 400: ['VALIDATION_FAILED'] },
    handle: ({ app, project, body }) => resendCodes(app, project, normaliseEmail(body.email)),
  }),
];
