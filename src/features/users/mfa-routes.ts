import { done, ok, route, type Route } from '../../http/routes/route.js';
import { arrayOf, MOMENT, object, openObject, orNull, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { HIDDEN_FIELD } from '../collections/fields/field.js';
import { ASKED_KEY } from '../access/key-access.js';
import { presentUser } from './accounts/present-user.js';
import { FACTOR_FIELDS } from './factors/check-factor.js';
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes } from './factors/enrol-totp.js';
import { STEP_UP_BODY, STEP_UP_ERRORS, requireStepUp } from './step-up/require-step-up.js';
import { clientOf, deliverTokens, REFRESH_MODE } from './sessions/deliver-tokens.js';
import { ENROLLING } from './sessions/signed-in-access.js';
import { completeWithFactor, signedIn } from './sign-in/complete-sign-in.js';

const RECOVERY_CODES = object({
  recoveryCodes: { ...arrayOf(text({ examples: ['abcde-fgh23'] })), description: 'Shown once; each works once.' },
});
const ENROL_ERRORS = {
  ...STEP_UP_ERRORS,
  403: [...STEP_UP_ERRORS[403], 'MFA_OFF', 'EMAIL_UNVERIFIED'],
  409: ['TOTP_ENROLLED', 'CHANGED_MEANWHILE'],
};
const ENROLLED_ERRORS = { ...STEP_UP_ERRORS, 409: ['TOTP_NOT_ENROLLED', 'CHANGED_MEANWHILE'] };

/** The second factor of an account (accounts.md 4). */
export const MFA_ROUTES: readonly Route[] = [
  route('POST /api/userAuth/login/mfa', {
    id: 'logInWithFactor',
    bodySize: 'small',
    summary: 'Finish a sign-in with MFA',
    description: 'After 401 `MFA_REQUIRED`, with its `mfaToken`. Wrong codes count as wrong passwords.',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    body: openObject({ mfaToken: text({ minLength: 1, maxLength: 100 }), ...FACTOR_FIELDS }),
    example: { mfaToken: 'from MFA_REQUIRED', totp: '123456' },
    answers: signedIn(),
    errors: {
      401: ['MFA_TOKEN_INVALID', 'MFA_CODE_INVALID', 'PASSKEY_INVALID', 'INVALID_CREDENTIALS'],
      403: ['ACCOUNT_DISABLED', 'PASSKEYS_OFF'],
      423: ['ACCOUNT_LOCKED'],
    },
    async handle({ app, ctx, project, body }) {
      const { user, tokens } = await completeWithFactor(app, project, body, clientOf(ctx));
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('GET /api/userAuth/mfa', {
    id: 'showFactors',
    summary: 'Get the MFA status of the account',
    access: ENROLLING,
    rate: 'plain',
    answers: ok(
      object({
        totp: orNull(object({ since: MOMENT })),
        recoveryCodes: { ...WHOLE, description: 'Number of unused codes.' },
        resetAt: { ...orNull(MOMENT), description: 'When a pending MFA reset takes effect.' },
      }),
      'Second factors',
    ),
    handle({ ctx, user }) {
      ctx.set('Cache-Control', 'no-store');
      const { totp, recovery, mfaResetAt } = user[HIDDEN_FIELD];
      return {
        totp: totp ? { since: totp.since.toISOString() } : null,
        recoveryCodes: recovery?.length ?? 0,
        resetAt: mfaResetAt?.toISOString() ?? null,
      };
    },
  }),
  route('POST /api/userAuth/mfa/totp', {
    id: 'beginTotp',
    bodySize: 'small',
    summary: 'Start adding an authenticator app',
    description:
      'Returns the secret and its URI for a QR code. Active after `mfa/totp/confirm`. Needs re-authentication within the last ten minutes and a confirmed address.',
    access: ENROLLING,
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: ok(object({ secret: TEXT, uri: TEXT }), 'Confirm with a code of the app'),
    errors: ENROL_ERRORS,
    async handle({ app, ctx, project, user, session, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      ctx.set('Cache-Control', 'no-store');
      return beginTotp(app, project, user);
    },
  }),
  route('POST /api/userAuth/mfa/totp/confirm', {
    id: 'confirmTotp',
    bodySize: 'small',
    summary: 'Confirm the authenticator app with a code',
    description: 'Later sign-ins require a code.',
    access: ENROLLING,
    body: openObject({ code: text({ minLength: 1, maxLength: 20, wellFormed: true, examples: ['123456'] }) }),
    example: { code: '123456' },
    answers: ok(RECOVERY_CODES, 'Authenticator app enrolled'),
    errors: {
      400: ['VALIDATION_FAILED', 'MFA_CODE_INVALID'],
      403: ['STEP_UP_REQUIRED', 'MFA_OFF', 'EMAIL_UNVERIFIED'],
      409: ENROL_ERRORS[409],
    },
    async handle({ app, ctx, project, user, session, body: { code } }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, {});
      ctx.set('Cache-Control', 'no-store');
      return { recoveryCodes: await confirmTotp(app, project, user, code) };
    },
  }),
  route('DELETE /api/userAuth/mfa/totp', {
    id: 'removeTotp',
    bodySize: 'small',
    summary: 'Remove the authenticator app and the recovery codes',
    access: ENROLLING,
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: done('Authenticator app removed'),
    errors: ENROLLED_ERRORS,
    async handle({ app, ctx, project, user, session, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      await removeTotp(app, project, user);
    },
  }),
  route('POST /api/userAuth/mfa/recovery-codes', {
    id: 'renewRecoveryCodes',
    bodySize: 'small',
    summary: 'Replace the recovery codes',
    access: ENROLLING,
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: ok(RECOVERY_CODES, 'New recovery codes'),
    errors: ENROLLED_ERRORS,
    async handle({ app, ctx, project, user, session, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      ctx.set('Cache-Control', 'no-store');
      return { recoveryCodes: await renewRecoveryCodes(app, project, user) };
    },
  }),
];
