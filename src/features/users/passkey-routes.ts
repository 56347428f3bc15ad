import { created, done, listOf, naming, ok, plain, route, type Route, wholeList } from '../../http/routes/route.js';
import { missing } from '../../errors.js';
import {
  claimed,
  FLAG,
  MOMENT,
  object,
  openObject,
  orNull,
  text,
  TEXT,
  type Schema,
} from '../../platform/schema/schema.js';
import { ANY_KEY, ASKED_KEY } from '../access/key-access.js';
import { HIDDEN_FIELD } from '../collections/fields/field.js';
import { listPasskeys, passkeyStore, presentPasskey, removePasskey } from './accounts/sign-in-methods.js';
import { presentUser } from './accounts/present-user.js';
import {
  beginPasskey,
  registerPasskey,
  ASSERTION,
  beginPasskeyLogin,
  checkPasskey,
  REGISTRATION,
} from './factors/passkeys.js';
import { STEP_UP_BODY, STEP_UP_ERRORS, requireStepUp } from './step-up/require-step-up.js';
import { clientOf, deliverTokens, REFRESH_MODE } from './sessions/deliver-tokens.js';
import { ENROLLING, SIGNED_IN } from './sessions/signed-in-access.js';
import { completeSignIn, accountDisabled, signedIn } from './sign-in/complete-sign-in.js';

const PASSKEY = object({ id: TEXT, name: TEXT, createdAt: MOMENT, usedAt: orNull(MOMENT), backedUp: FLAG }, 'Passkey');
const NAME = text({ maxLength: 60, wellFormed: true, examples: ['Laptop'] });
const OPTIONS: Schema<object> = claimed({
  type: 'object',
  required: ['challenge'],
  properties: { challenge: TEXT },
  description: 'For the browser, as JSON (WebAuthn).',
});
const params = { passkey: naming('Id of the passkey', 'PASSKEY_NOT_FOUND') };
const EXAMPLE = { id: 'AA', rawId: 'AA', type: 'public-key', response: {} } as const;

/** Passkeys (accounts.md 4): a way in that counts as two factors, as the device has its user verified. */
export const PASSKEY_ROUTES: readonly Route[] = [
  route('POST /api/userAuth/login/passkey/options', {
    id: 'beginPasskeyLogin',
    bodySize: 'small',
    summary: 'Get options to sign in with a passkey',
    description:
      'Also for a passkey in MFA (`login/mfa`) and re-authentication (`step-up`). Valid once, for five minutes.',
    access: ANY_KEY,
    answers: plain(OPTIONS, 'Options of `navigator.credentials.get`'),
    errors: { 403: ['PASSKEYS_OFF'] },
    handle({ app, ctx, project }) {
      ctx.set('Cache-Control', 'no-store');
      return beginPasskeyLogin(app, project);
    },
  }),
  route('POST /api/userAuth/login/passkey', {
    id: 'logInByPasskey',
    bodySize: 'small',
    summary: 'Sign in with a passkey',
    access: ASKED_KEY,
    headers: REFRESH_MODE,
    body: openObject({ response: ASSERTION }),
    example: { response: EXAMPLE },
    answers: signedIn(),
    errors: { 401: ['PASSKEY_INVALID', 'INVALID_CREDENTIALS'], 403: ['PASSKEYS_OFF', 'ACCOUNT_DISABLED'] },
    async handle({ app, ctx, project, body: { response } }) {
      const { user, uses } = await checkPasskey(app, project, response);
      if (user[HIDDEN_FIELD].disabledAt) {
        await app.db.transaction(uses);
        throw accountDisabled();
      }
      const tokens = await completeSignIn(app, project, user, clientOf(ctx), { method: 'passkey' }, uses);
      return { user: presentUser(user), ...deliverTokens(app, ctx, project, tokens) };
    },
  }),
  route('POST /api/userAuth/passkeys/options', {
    id: 'beginPasskey',
    bodySize: 'small',
    summary: 'Get options to create a passkey',
    description: 'Needs re-authentication within the last ten minutes and a confirmed address.',
    access: ENROLLING,
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: plain(OPTIONS, 'Options of `navigator.credentials.create`'),
    errors: {
      ...STEP_UP_ERRORS,
      403: [...STEP_UP_ERRORS[403], 'EMAIL_UNVERIFIED'],
      409: ['TOO_MANY_PASSKEYS'],
    },
    async handle({ app, ctx, project, user, session, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      ctx.set('Cache-Control', 'no-store');
      return beginPasskey(app, project, user);
    },
  }),
  route('POST /api/userAuth/passkeys', {
    id: 'registerPasskey',
    bodySize: 'small',
    summary: 'Register a passkey',
    access: ENROLLING,
    body: openObject({ response: REGISTRATION, 'name?': NAME }),
    example: { response: EXAMPLE, name: 'Laptop' },
    answers: created(PASSKEY, 'Passkey registered'),
    errors: {
      400: ['VALIDATION_FAILED', 'PASSKEY_INVALID'],
      403: ['PASSKEYS_OFF', 'QUOTA_EXCEEDED'],
      409: ['PASSKEY_KNOWN', 'TOO_MANY_PASSKEYS'],
    },
    async handle({ app, project, user, body: { response, name = 'Passkey' } }) {
      return presentPasskey(await registerPasskey(app, project, user, { response, name }));
    },
  }),
  route('GET /api/userAuth/passkeys', {
    id: 'listPasskeys',
    summary: 'List passkeys of the account',
    description: 'Oldest first.',
    access: ENROLLING,
    rate: 'plain',
    answers: ok(listOf(PASSKEY), 'Passkeys'),
    async handle({ app, ctx, project, user }) {
      ctx.set('Cache-Control', 'no-store');
      return wholeList((await listPasskeys(app, project, user)).map(presentPasskey));
    },
  }),
  route('PATCH /api/userAuth/passkeys/:passkey', {
    id: 'renamePasskey',
    bodySize: 'small',
    summary: 'Rename a passkey',
    access: SIGNED_IN,
    rate: 'plain',
    params,
    body: openObject({ name: NAME }),
    example: { name: 'Laptop' },
    answers: ok(PASSKEY, 'Passkey named'),
    errors: { 400: ['VALIDATION_FAILED'] },
    async handle({ app, project, user, params: { passkey: _id }, body: { name } }) {
      const passkey = (await listPasskeys(app, project, user)).find((each) => each._id === _id);
      if (!passkey) throw missing('PASSKEY_NOT_FOUND', 'The account has no such passkey');
      await passkeyStore(app).updateOne({ _id }, { $set: { name } });
      return presentPasskey({ ...passkey, name });
    },
  }),
  route('DELETE /api/userAuth/passkeys/:passkey', {
    id: 'removePasskey',
    bodySize: 'small',
    summary: 'Remove a passkey and end all other sessions',
    description: 'Needs re-authentication within the last ten minutes.',
    access: SIGNED_IN,
    rate: 'plain',
    params,
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    answers: done('Passkey removed; all other sessions have ended'),
    errors: { ...STEP_UP_ERRORS, 409: ['LAST_SIGN_IN_METHOD', 'CHANGED_MEANWHILE'] },
    async handle({ app, ctx, project, user, session, params: { passkey }, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      await removePasskey(app, project, user, passkey, session);
    },
  }),
];
