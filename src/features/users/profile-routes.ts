import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { requireCollection } from '../collections/collection-store.js';
import { HIDDEN_FIELD } from '../collections/fields/field.js';
import { USERS } from '../collections/users-collection.js';
import type { PresentedDocument } from '../documents/reply/present-document.js';
import type { Project } from '../projects/project.js';
import {
  presentPublicUser,
  IDENTITY,
  NEW_PASSWORD,
  PASSWORD,
  PROFILE_CHANGES,
  PUBLIC_USER,
  USER,
  presentUser,
} from './accounts/present-user.js';
import type { User } from './user.js';
import { userStore } from './user-store.js';
import { done, listOf, naming, ok, plain, route, wholeList, type Route } from '../../http/routes/route.js';
import { object, oneOf, openObject, orNull, TEXT } from '../../platform/schema/schema.js';
import { ANY_KEY } from '../access/key-access.js';
import { countSignIn } from '../access/limit-requests.js';
import { listIdentities, presentIdentity, unlinkIdentity } from './accounts/sign-in-methods.js';
import { setterOf } from './accounts/new-user.js';
import { normaliseEmail } from './credentials.js';
import { FACTOR_FIELDS } from './factors/check-factor.js';
import { findLevel } from './factors/factors.js';
import { changePassword } from './accounts/password.js';
import { updateProfile } from './profile/update-profile.js';
import { STEP_UP_BODY, STEP_UP_ERRORS, requireStepUp } from './step-up/require-step-up.js';
import { ENROLLING, SIGNED_IN } from './sessions/signed-in-access.js';

const NAMELESS =
  "Users of this project have no names. This adds the unique field they are found by: bsvc collection edit users --add-field 'username:String&'";

/**
 * The public fields of the active user with that `username`; 404 USER_NOT_FOUND, which says so where the schema has
 * no unique `username`.
 */
async function requirePublicProfile(app: App, project: Project, username: string): Promise<PresentedDocument> {
  const { fields } = await requireCollection(app, project._id, USERS);
  // Unique, so that a name means one person, and so that there is an index to find it by.
  const named = fields.some((field) => field.name === 'username' && field.type === 'String' && field.unique);
  if (!named) throw missing('USER_NOT_FOUND', NAMELESS);
  const user = await findActive(app, project, username);
  if (!user) throw missing('USER_NOT_FOUND', 'There is no user with this name');
  return presentPublicUser(user, fields);
}

async function findActive(app: App, project: Project, username: string): Promise<User | null> {
  const found = await userStore(app, project._id).findOne({ username, isDeleted: false });
  return found?.[HIDDEN_FIELD].disabledAt ? null : found;
}

const EMAIL_PENDING = 'Profile updated; the new e-mail address counts once the code mailed to it is confirmed';
const EMAIL_PENDING_UNMAILED =
  'Profile updated; no code was mailed to the new e-mail address, as one was a moment ago or too many were today: ask again later';

const UPDATE_ERRORS = {
  400: ['VALIDATION_FAILED', 'CURRENT_PASSWORD_REQUIRED', 'REFERENCE_MISSING', 'TOO_MANY_REFERENCES'],
  401: ['INVALID_CREDENTIALS', 'MFA_CODE_INVALID'],
  403: ['QUOTA_EXCEEDED', 'STEP_UP_REQUIRED'],
  409: ['EMAIL_TAKEN', 'DUPLICATE_VALUE', 'DOCUMENT_CHANGING', 'CHANGED_MEANWHILE'],
  413: ['DOCUMENT_TOO_LARGE'],
  423: ['ACCOUNT_LOCKED'],
  503: ['BUSY'],
};

const changeProfile = (method: 'PUT' | 'PATCH', id: string, summary: string) =>
  route(`${method} /api/userAuth/update-profile`, {
    id,
    bodySize: 'small',
    summary,
    description:
      'Changes only the fields in the body. A new address is pending until its code is confirmed with `verify-email`; the current address is notified. With the secret key it changes immediately, unconfirmed unless `emailVerified` is true.',
    access: SIGNED_IN,
    rate: 'plain',
    openBody: PROFILE_CHANGES,
    example: { name: 'Ada Lovelace' },
    answers: plain(
      object({ success: oneOf(true), data: USER, 'pendingEmail?': orNull(TEXT), message: TEXT }),
      'The user; `pendingEmail` is the new address that waits for its code',
    ),
    errors: UPDATE_ERRORS,
    async handle({ app, ctx, caller, project, user, session, body }) {
      const editor = { setter: setterOf(caller), ip: ctx.ip, session, caller };
      // It has a password tried and mails sent, like a sign-in.
      const { email } = body as { email?: unknown };
      const isAsked = editor.setter === 'user' && typeof email === 'string' && normaliseEmail(email) !== user.email;
      if (isAsked) await countSignIn(app, ctx, project);
      // Where the account has just a password, `currentPassword` is the proof.
      const hasPassword = user[HIDDEN_FIELD].passwordHash !== null;
      if (isAsked && (!hasPassword || (await findLevel(app, project, user)) === 2)) {
        await requireStepUp(app, project, { user, session, ip: ctx.ip }, {});
      }
      const { user: updated, mailed } = await updateProfile(app, project, user, body, editor);
      return {
        success: true as const,
        data: presentUser(updated),
        ...(mailed !== undefined && { pendingEmail: updated[HIDDEN_FIELD].pendingEmail?.address ?? null }),
        message: mailed === undefined ? 'Profile updated' : mailed ? EMAIL_PENDING : EMAIL_PENDING_UNMAILED,
      };
    },
  });

const PASSWORD_ERRORS = {
  400: ['VALIDATION_FAILED'],
  401: ['INVALID_CREDENTIALS', 'MFA_CODE_INVALID'],
  403: ['STEP_UP_REQUIRED'],
  409: ['CHANGED_MEANWHILE'],
  423: ['ACCOUNT_LOCKED'],
  503: ['BUSY'],
};

const changePasswordBy = (method: 'POST' | 'PUT', id: string, summary: string) =>
  route(`${method} /api/userAuth/change-password`, {
    id,
    bodySize: 'small',
    summary,
    description:
      'Ends all other sessions of the user. Accounts with MFA also need a code, here or within the last ten minutes.',
    access: SIGNED_IN,
    body: openObject({ currentPassword: PASSWORD, newPassword: NEW_PASSWORD, ...FACTOR_FIELDS }),
    example: { currentPassword: 'correct horse battery', newPassword: 'staple correct horse' },
    answers: done('Password changed; all other sessions have ended'),
    errors: PASSWORD_ERRORS,
    async handle({ app, ctx, project, user, session, body: { currentPassword, newPassword, ...factor } }) {
      const proving = { user, session, ip: ctx.ip };
      if ((await findLevel(app, project, user)) === 2) await requireStepUp(app, project, proving, factor);
      await changePassword(app, project, user, { currentPassword, newPassword }, proving);
    },
  });

export const PROFILE_ROUTES: readonly Route[] = [
  route('GET /api/userAuth/me', {
    id: 'getMe',
    summary: 'Get the signed-in user',
    access: ENROLLING,
    rate: 'plain',
    answers: plain(USER, 'The user itself'),
    handle({ ctx, user }) {
      ctx.set('Cache-Control', 'no-store');
      return presentUser(user);
    },
  }),
  changeProfile('PATCH', 'updateProfile', 'Change fields of the signed-in user'),
  changeProfile('PUT', 'putProfile', 'Change fields of the signed-in user (as PATCH)'),
  changePasswordBy('POST', 'changePassword', 'Change the password'),
  changePasswordBy('PUT', 'putPassword', 'Change the password (as POST)'),
  route('GET /api/userAuth/identities', {
    id: 'listIdentities',
    summary: 'List linked identities of sign-in providers',
    description: 'Oldest first.',
    access: SIGNED_IN,
    rate: 'plain',
    answers: ok(listOf(IDENTITY), 'Identities'),
    async handle({ app, ctx, project, user }) {
      ctx.set('Cache-Control', 'no-store');
      return wholeList((await listIdentities(app, project, user)).map(presentIdentity));
    },
  }),
  route('DELETE /api/userAuth/identities/:provider', {
    id: 'unlinkIdentity',
    summary: 'Unlink the identities of a provider and end all other sessions',
    description: 'Needs re-authentication within the last ten minutes.',
    access: SIGNED_IN,
    rate: 'plain',
    params: { provider: naming('Name of the provider', 'IDENTITY_NOT_FOUND') },
    answers: done('Identity unlinked; all other sessions have ended'),
    body: STEP_UP_BODY,
    bodyIsOptional: true,
    errors: { ...STEP_UP_ERRORS, 409: ['LAST_SIGN_IN_METHOD', 'CHANGED_MEANWHILE'] },
    async handle({ app, ctx, project, user, session, params, body }) {
      await requireStepUp(app, project, { user, session, ip: ctx.ip }, body);
      await unlinkIdentity(app, project, user, params.provider, session);
    },
  }),
  route('GET /api/userAuth/public/:username', {
    id: 'getPublicProfile',
    summary: 'Get the public profile of a user',
    access: ANY_KEY,
    rate: 'plain',
    params: { username: naming('Value of the unique field `username`', 'USER_NOT_FOUND') },
    answers: plain(PUBLIC_USER, 'The profile itself'),
    handle: ({ app, project, params }) => requirePublicProfile(app, project, params.username),
  }),
];
