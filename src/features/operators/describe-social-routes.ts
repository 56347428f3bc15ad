import {
  arrayOf,
  jsonBody,
  listOf,
  MOMENT,
  naming,
  object,
  ok,
  parameter,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { readProviderBody } from './social-routes.js';

/** What presentSocialProvider answers. */
const PROVIDER = object(
  {
    name: TEXT,
    issuer: TEXT,
    clientId: TEXT,
    scopes: arrayOf(TEXT),
    redirectUrls: arrayOf(TEXT),
    createdAt: MOMENT,
    updatedAt: MOMENT,
  },
  'SocialProvider',
);

/** As in social-routes.ts. */
export const PROJECT_SOCIAL_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/social',
  tag: 'Project users',
  path: { provider: naming('Name of the provider', 'PROVIDER_NOT_FOUND') },
  routes: {
    'GET /': {
      id: 'listSocialProviders',
      summary: 'List sign-in providers',
      access: OPERATOR,
      answers: ok('All of them, without their secrets', listOf(PROVIDER)),
    },
    'PUT /:provider': {
      id: 'setSocialProvider',
      summary: 'Add a sign-in provider or replace its settings',
      access: OWNER,
      path: { provider: parameter('`google`, `github` or a name of your choice', TEXT) },
      body: jsonBody(readProviderBody.schema, {
        clientId: '1234.apps.googleusercontent.com',
        clientSecret: 'SECRET',
        redirectUrls: ['https://shop.example.com/signed-in'],
      }),
      answers: ok('The provider', PROVIDER),
      refuses: { 400: ['INVALID_PROVIDER', 'PRIVATE_ADDRESS'] },
    },
    'DELETE /:provider': {
      id: 'removeSocialProvider',
      summary: 'Remove a sign-in provider; its users stay',
      access: OWNER,
      answers: ok('What was removed', PROVIDER),
    },
  },
};
