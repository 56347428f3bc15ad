import { created, done, listOf, naming, ok, route, type Route, wholeList } from '../../http/routes/route.js';
import { arrayOf, claimed, MOMENT, object, openObject, text, TEXT, type Schema } from '../../platform/schema/schema.js';
import { ANY_KEY, SECRET_KEY } from '../access/key-access.js';
import { EMAIL, USER, presentUser } from './accounts/present-user.js';
import { ROLE_LIST } from './accounts/user-roles.js';
import {
  acceptInvite,
  requireInvite,
  INVITE,
  listInvites,
  presentInvite,
  withdrawInvite,
  sendInvite,
} from './invites/invite.js';
import { SIGNED_IN } from './sessions/signed-in-access.js';

const DOCUMENT: Schema<Record<string, unknown>> = claimed({
  type: 'object',
  description: 'Inserted when the invitation is accepted; `=user.id` is replaced by the id of the user.',
});
const TOKEN = text({ minLength: 1, maxLength: 100, description: 'From the link in the email.' });

export const SEND_INVITE = route('POST /api/userAuth/invites', {
  id: 'sendInvite',
  bodySize: 'small',
  summary: 'Invite a user by email',
  description:
    'The email (template `invite`) links to `redirect`, one of the project’s URLs, with `#invite=<token>`. It works once, for seven days, for a user with that confirmed address.',
  access: SECRET_KEY,
  rate: 'plain',
  body: openObject({
    email: EMAIL,
    redirect: text({ maxLength: 500 }),
    'roles?': ROLE_LIST,
    'set?': object({ collection: TEXT, document: DOCUMENT }),
    'inviterName?': text({ minLength: 1, maxLength: 100, wellFormed: true, oneLine: true }),
  }),
  example: { email: 'grace@example.com', redirect: 'https://shop.example/join', roles: ['editor'] },
  answers: created(INVITE, 'Invitation mailed'),
  errors: {
    400: ['VALIDATION_FAILED', 'INVALID_EMAIL', 'REDIRECT_NOT_ALLOWED', 'INVALID_INVITE'],
    403: ['QUOTA_EXCEEDED'],
    404: ['COLLECTION_NOT_FOUND'],
    409: ['ROLES_FIELD', 'TOO_MANY_INVITES'],
    429: ['INVITE_LIMIT'],
    503: ['HOOK_FAILED'],
  },
  async handle({ app, project, body }) {
    return presentInvite(await sendInvite(app, project, body));
  },
});

export const LIST_INVITES = route('GET /api/userAuth/invites', {
  id: 'listInvites',
  summary: 'List open invitations',
  description: 'Newest first; at most 100.',
  access: SECRET_KEY,
  rate: 'plain',
  answers: ok(listOf(INVITE), 'Invitations'),
  async handle({ app, project }) {
    return wholeList((await listInvites(app, project)).map(presentInvite));
  },
});

export const WITHDRAW_INVITE = route('DELETE /api/userAuth/invites/:invite', {
  id: 'withdrawInvite',
  summary: 'Withdraw an invitation',
  access: SECRET_KEY,
  rate: 'plain',
  params: { invite: naming('Id of the invitation', 'INVITE_NOT_FOUND') },
  answers: done('Invitation withdrawn'),
  handle: ({ app, project, params: { invite } }) => withdrawInvite(app, project, invite),
});

/** Invitations (accounts.md 4). */
export const INVITE_ROUTES: readonly Route[] = [
  SEND_INVITE,
  LIST_INVITES,
  route('POST /api/userAuth/invites/accept', {
    id: 'acceptInvite',
    bodySize: 'small',
    summary: 'Accept an invitation',
    description: 'Adds its roles and inserts its document. Does not sign in.',
    access: SIGNED_IN,
    body: openObject({ token: TOKEN }),
    example: { token: 'from the address in the mail' },
    answers: ok(USER, 'Invitation accepted'),
    errors: {
      400: ['VALIDATION_FAILED'],
      403: ['EMAIL_MISMATCH', 'QUOTA_EXCEEDED'],
      404: ['INVITE_NOT_FOUND', 'COLLECTION_NOT_FOUND'],
      409: ['ROLES_FIELD', 'CHANGED_MEANWHILE'],
    },
    async handle({ app, project, user, body: { token } }) {
      return presentUser(await acceptInvite(app, project, user, token));
    },
  }),
  route('POST /api/userAuth/invites/show', {
    id: 'showInvite',
    bodySize: 'small',
    summary: 'Get an invitation',
    access: ANY_KEY,
    body: openObject({ token: TOKEN }),
    example: { token: 'from the address in the mail' },
    answers: ok(object({ email: TEXT, roles: arrayOf(TEXT), expiresAt: MOMENT }), 'Invitation'),
    errors: { 400: ['VALIDATION_FAILED'], 404: ['INVITE_NOT_FOUND'] },
    async handle({ app, ctx, project, body: { token } }) {
      ctx.set('Cache-Control', 'no-store');
      const { email, roles, expiresAt } = presentInvite(await requireInvite(app, project, token));
      return { email, roles, expiresAt };
    },
  }),
  WITHDRAW_INVITE,
];
