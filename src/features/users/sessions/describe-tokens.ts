import { parameter, TEXT, type Schema } from '../../../http/routes/route-description.js';

/** The token part of replies, as deliverTokens makes it. */
export const TOKEN_FIELDS: Record<string, Schema> = {
  accessToken: TEXT,
  token: { ...TEXT, deprecated: true, description: 'The same as `accessToken`.' },
  expiresIn: { ...TEXT, examples: ['15m'] },
  'refreshToken?': { ...TEXT, description: 'Only when asked for by `x-refresh-token-mode: header`.' },
};

export const TOKEN_HEADERS = {
  'x-refresh-token': 'The refresh token, unless `x-refresh-token-mode` is `cookie`',
  'Set-Cookie': 'The refresh token for browsers, as the HTTP-only cookie `bsvc_rt_<project id>`',
};

export const REFRESH_MODE = {
  'x-refresh-token-mode': parameter(
    '`header`: the refresh token in the body too. `cookie`: in the cookie alone. Anything else is ignored.',
    TEXT,
  ),
};
