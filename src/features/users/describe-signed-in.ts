import { plain } from '../../http/routes/route.js';
import { object } from '../../platform/schema/schema.js';
import { USER } from './accounts/present-user.js';
import { TOKEN_FIELDS, TOKEN_HEADERS } from './sessions/deliver-tokens.js';

const SIGNED_IN_REPLY = object({ user: USER, ...TOKEN_FIELDS }, 'SignedIn');

/** The user with the tokens, as a sign-in of whatever kind answers it. */
export const signedIn = (status = 200) => ({
  ...plain(SIGNED_IN_REPLY, 'The user, signed in', status),
  headers: TOKEN_HEADERS,
});
