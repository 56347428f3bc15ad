import { parameter } from '../../../http/routes/route.js';
import { text, TEXT } from '../../../platform/schema/schema.js';

/** The token part of a signup, login or refresh reply. */
export const TOKEN_FIELDS = {
  accessToken: TEXT,
  token: text({ deprecated: true, description: 'The same as `accessToken`.' }),
  expiresIn: text({ examples: ['15m'] }),
  'refreshToken?': text({
    description: 'When asked for by `x-refresh-token-mode: header`; of a social sign-in unless it says `cookie`.',
  }),
};

export const TOKEN_HEADERS = {
  'x-refresh-token': 'The refresh token, unless `x-refresh-token-mode` is `cookie`',
  'Set-Cookie': 'The refresh token for browsers, as the HTTP-only cookie `bsvc_rt_<project id>`',
};

export const REFRESH_TOKEN = {
  'x-refresh-token': parameter(
    'The refresh token; browsers send it as the cookie `bsvc_rt_<project id>` instead',
    TEXT,
  ),
};

export const REFRESH_MODE = {
  'x-refresh-token-mode': parameter(
    '`header`: the refresh token in the body too. `cookie`: in the cookie alone. Anything else is ignored.',
    TEXT,
  ),
};
