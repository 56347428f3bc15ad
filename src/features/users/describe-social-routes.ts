import {
  jsonAnswer,
  jsonBody,
  naming,
  openObject,
  parameter,
  PUBLIC,
  TEXT,
  type RouteDescription,
  type Schema,
} from '../../http/routes/route-description.js';
import { ANY_KEY, KEY_IN_QUERY } from '../access/describe-access.js';
import { REFRESH_MODE, TOKEN_HEADERS } from './sessions/describe-tokens.js';

const PROVIDER = {
  provider: naming(
    'Name of a provider that the project has set up: `google`, `github` or its own',
    'PROVIDER_NOT_FOUND',
  ),
};

/** As in social-routes.ts; `signedIn` is the reply of a login. */
export function describeSocialRoutes(signedIn: Schema): Record<string, RouteDescription> {
  return {
    'GET /social/:provider/start': {
      id: 'startSocialLogin',
      summary: 'Send the browser to a sign-in provider',
      description: 'To be opened by the browser itself, which comes back to `redirect` with `?rtCode=…` or `?error=…`.',
      access: KEY_IN_QUERY,
      path: PROVIDER,
      query: {
        redirect: parameter('Where to return to: one of the listed addresses, else the first of them', TEXT),
        state: parameter('Comes back beside `rtCode` or `error`, so that the application knows its own sign-in', {
          ...TEXT,
          maxLength: 512,
        }),
        code_challenge: parameter('SHA-256 of a `code_verifier`, as base64url, which the exchange then demands', {
          ...TEXT,
          pattern: '^[A-Za-z0-9_-]{43}$',
        }),
        code_challenge_method: parameter('S256 is the only one', { const: 'S256' }),
      },
      answers: { 302: { description: 'To the provider', headers: { Location: 'The provider’s page' } } },
      refuses: { 400: ['REDIRECT_NOT_ALLOWED', 'INVALID_QUERY'] },
    },
    'GET /social/:provider/callback': {
      id: 'finishSocialLogin',
      summary: 'Where the provider sends the browser back to',
      access: PUBLIC,
      path: PROVIDER,
      query: {
        state: parameter('Names the sign-in', TEXT),
        code: parameter('From the provider', TEXT),
        error: parameter('From the provider', TEXT),
      },
      answers: {
        302: { description: 'Back to the application', headers: { Location: 'The address with `rtCode` or `error`' } },
      },
      refuses: { 400: ['SOCIAL_STATE_INVALID'] },
    },
    'POST /social/exchange': {
      id: 'exchangeSocialCode',
      summary: 'Exchange the code of a social sign-in for tokens',
      access: ANY_KEY,
      headers: REFRESH_MODE,
      body: jsonBody(
        openObject({
          rtCode: { type: 'string', minLength: 1, maxLength: 72 },
          'code_verifier?': {
            type: 'string',
            pattern: '^[A-Za-z0-9._~-]{43,128}$',
            description: 'Exactly when the start had a `code_challenge`.',
          },
        }),
        { rtCode: 'the value from the address' },
      ),
      answers: { 200: jsonAnswer('The user, signed in', signedIn, TOKEN_HEADERS) },
      refuses: {
        400: ['VALIDATION_FAILED'],
        401: ['SOCIAL_CODE_INVALID', 'INVALID_CREDENTIALS'],
      },
    },
  };
}
